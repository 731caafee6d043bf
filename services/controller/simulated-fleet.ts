/**
 * The simulated fleet of `headroom serve`: the demonstration, or a custom scenario
 * (CONTROLLER_SIMULATED_FLEET).
 */
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import type { ControllerOptions } from '../../controller/controller.ts'
import type { Store } from '../../controller/ports/store.ts'
import type { FaultNote } from '../../simulator/world/fault-agenda.ts'
import { refuseBeyondFleet } from '../../simulator/fleet/fleet-faults.ts'
import { createLiveFleet } from '../../simulator/world/live.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { ScenarioError } from '../../simulator/document/problem.ts'
import type { Scenario } from '../../simulator/scenario/scenario.ts'
import { ENVIRONMENT } from '../settings/env-table.ts'
import { UsageError } from '../exit-codes.ts'
import { packageRoot } from '../package-info.ts'
import { REAL_TIME } from '../real-time.ts'
import type { ServedFleet } from './served-fleet.ts'

const DEMONSTRATION = fileURLToPath(new URL('scenarios/live-demo.scenario.yaml', packageRoot()))
/** Simulated age of the demonstration on a new store. */
const WARM_UP_MS = 2 * 3_600_000

export interface FleetScenario {
  readonly scenario: Scenario
  /** Null: the demonstration. */
  readonly file: string | null
}

/**
 * @param file null: the demonstration
 * @throws UsageError with file, line and column for what cannot be read or served
 */
export function readFleet(file: string | null): FleetScenario {
  try {
    const { scenario } = loadScenario(file ?? DEMONSTRATION, [], ({ faults }, refuse) =>
      refuseBeyondFleet(faults, refuse, true),
    )
    return { scenario, file }
  } catch (error) {
    if (error instanceof ScenarioError && file !== null)
      throw new UsageError(`${ENVIRONMENT.simulatedFleet.name}: ${error.message}`)
    throw error
  }
}

export async function startSimulatedFleet(
  { scenario, file }: FleetScenario,
  store: Store,
  log: Logger,
  options: ControllerOptions,
): Promise<ServedFleet> {
  // The demonstration shows a cluster with some history.
  const isWarm = file === null && (await store.load()).marks.epoch === 0
  const startAt = isWarm ? Date.now() - WARM_UP_MS : Date.now()
  const onRefused = (nodeId: string | null, reason: string): void => {
    log.warn({ node_id: nodeId, reason }, 'message refused')
    options.onRefused?.(nodeId, reason)
  }
  const controller = { ...options, onRefused }
  const onFault: FaultNote = (phase, fault) => log.info({ fault }, `fault ${phase}`)
  const fleet = createLiveFleet({
    scenario,
    store,
    real: REAL_TIME,
    startAt,
    seed: randomUUID(),
    controller,
    onFault,
  })
  await fleet.start()
  return {
    controller: fleet.controller,
    kind: 'simulated',
    describe: file === null ? 'a simulated fleet' : `the simulated fleet of ${file}`,
    dropped: new Map(),
    readiness: () => [],
    stop: () => fleet.stop(),
  }
}
