/** A replay: one trace on a fleet that the command line describes, without a scenario file. */
import type { PlacementStrategy } from '../../controller/model/config.ts'
import type { DurationMs, Mib, Percent } from '../../protocol/units.ts'
import { SWAP_PROFILES } from '../scenario/swap-profiles.ts'
import type { SwapProfileName } from '../scenario/swap-profiles.ts'
import type { RunPlan } from '../run/run.ts'
import type { ScenarioNode } from '../scenario/scenario.ts'
import type { FleetEntry } from '../trace/import/openb-fleet.ts'

export interface ReplayRequest {
  /** Absolute. */
  readonly traceFile: string
  readonly fleet: readonly FleetEntry[]
  readonly swap: SwapProfileName
  readonly overcommitPercent: Percent
  readonly strategy: PlacementStrategy
  readonly reserveMib: Mib | null
  readonly idleSwapOutSeconds: number | null
  readonly seed: number
  readonly timeScale: number
  readonly sample: number
  readonly maxGpus: number | null
  readonly untilMs: DurationMs | null
}

/** Identical nodes. */
export function uniformFleet(count: number, gpus: number, vramMib: Mib): FleetEntry[] {
  return [{ count, name: 'node-{i}', gpus, gpu: { model: 'generic', vram_mib: vramMib } }]
}

/** Time begins at 0: the clock of a replay is that of its trace. */
export function replayPlan(request: ReplayRequest): RunPlan {
  const { overcommitPercent, strategy, reserveMib, idleSwapOutSeconds } = request
  return {
    seed: request.seed,
    clock: { startMs: 0, untilMs: request.untilMs, drain: true },
    nodes: request.fleet.flatMap((entry) => nodesOf(entry, request.swap)),
    config: {
      default_vram_overcommit_percent: overcommitPercent,
      placement_strategy: strategy,
      ...(reserveMib === null ? {} : { safety_reserve_mib: reserveMib }),
      ...(idleSwapOutSeconds === null ? {} : { idle_swap_out_seconds: idleSwapOutSeconds }),
    },
    workload: [
      {
        kind: 'trace',
        name: 'trace',
        file: request.traceFile,
        idPrefix: '',
        timeScale: request.timeScale,
        sample: request.sample,
        fromMs: 0,
        toMs: null,
        maxGpus: request.maxGpus,
        activity: null,
      },
    ],
    operator: [],
  }
}

function nodesOf(entry: FleetEntry, swap: SwapProfileName): ScenarioNode[] {
  const { model, vram_mib: vramMib } = entry.gpu
  const gpu = { model, vramMib, swap: SWAP_PROFILES[swap], efficiencyPermille: [1000] }
  return Array.from({ length: entry.count }, (_, i) => ({
    name: entry.name.replaceAll('{i}', String(i)),
    gpuCount: entry.gpus,
    gpu,
    groups: [],
    safetyReserveMib: null,
    overcommitPercent: null,
    hostSwapMib: 2 * entry.gpus * vramMib,
  }))
}
