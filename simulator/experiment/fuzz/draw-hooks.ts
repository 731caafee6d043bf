/**
 * Draws tasks that move their data themselves, what they keep in VRAM, and hooks that misbehave. All from
 * separate random streams: seeds without the feature do not depend on it.
 */
import { HOOK_FAULTS } from '../../scenario/fault.ts'
import type { DurationMs } from '../../../protocol/units.ts'
import type { FuzzRandom } from './fuzz-random.ts'
import type { Entry, FuzzDocument, Value } from './document.ts'
import type { DrawnNode } from './draw-fleet.ts'
import { drawFaults, type FaultShape } from './draw-faults.ts'
import { HOOK_FEATURE, type Features } from './features.ts'

type Drawn = Pick<FuzzDocument, 'fleet' | 'config' | 'workload'>

const TURNS_PERCENT = 75
const HOOKED_PERCENT = 70
/** Share of the nodes with a driver that cannot swap. */
const NO_DRIVER_PERCENT = 15
/** A suspend may leave 1 GiB: only larger tasks can leave too much of themselves. */
const LARGE_PERCENT = 50
const LARGE_FACTOR = 8
const FAST = { out_mib_per_s: 8192, in_mib_per_s: 8192, out_fixed_ms: 50, in_fixed_ms: 50 }
/** Longer than the deadline of an order. */
const SLOW = { out_mib_per_s: 50, in_mib_per_s: 50, out_fixed_ms: 2_000, in_fixed_ms: 2_000 }

export function drawHooks(dice: FuzzRandom, drawn: Drawn, { on }: Features): Drawn {
  if (!on.has(HOOK_FEATURE)) return drawn
  const idleMs = Number(drawn.config['idle_swap_out_seconds']) * 1_000
  const shared = dice.chance(TURNS_PERCENT) ? takingTurns(dice, drawn, idleMs) : drawn
  const { fleet, config, workload } = dice.chance(LARGE_PERCENT) ? larger(shared) : shared
  return {
    fleet: fleet.map((node) => withMethods(dice, node)),
    config,
    workload: workload.map(({ task }) => ({ task: withHooks(dice, task as Entry) })),
  }
}

/** Model servers that do not fit at once, idle most of the time: many swaps. */
function takingTurns(dice: FuzzRandom, { fleet, config, workload }: Drawn, idleMs: DurationMs): Drawn {
  const { max_tasks_per_gpu: _seats, ...rest } = config
  return {
    fleet: fleet.map(({ overcommit_vram_percent: _percent, host_swap_mib: _mib, ...node }) => node),
    config: { ...rest, default_vram_overcommit_percent: dice.oneOf([100, 300, 1000]) },
    workload: workload.map(({ task }) => {
      const { noswap: _noswap, groups: _groups, ...wanted } = task as Entry
      if (!dice.chance(80)) return { task: wanted }
      const phases = Array.from({ length: dice.between(2, 6) }, () => [
        1 + dice.below(3_000),
        dice.between(1, 3) * idleMs + dice.below(5_000),
      ])
      const isShared = wanted['gpu_mode'] === undefined && wanted['alloc'] === undefined
      const vram = isShared ? { vram_mib: dice.between(300, 800) } : {}
      return { task: { ...wanted, ...vram, work: { kind: 'phases', phases } } }
    }),
  }
}

/** Only seeds that have faults: the others are checked more strictly. */
export function drawHookFaults(
  dice: FuzzRandom,
  nodes: readonly DrawnNode[],
  { on, faults }: Features,
  shape: Omit<FaultShape, 'kinds'>,
): Entry[] {
  if (!on.has(HOOK_FEATURE) || faults.length === 0) return []
  return drawFaults(dice, nodes, { ...shape, kinds: dice.some(HOOK_FAULTS, 50) })
}

function withMethods(dice: FuzzRandom, node: Entry): Entry {
  const methods = {
    swap_hooks: methodOf(dice),
    swap_engine: dice.chance(30) ? null : methodOf(dice),
    ...(dice.chance(NO_DRIVER_PERCENT) ? { driver_swaps: false } : {}),
  }
  return { ...node, gpu: { ...(node['gpu'] as Entry), ...methods } }
}

function methodOf(dice: FuzzRandom): Entry {
  return { swap: dice.chance(80) ? FAST : SLOW, residual_mib: dice.oneOf([0, 1, 10, 100, 400, 900]) }
}

function withHooks(dice: FuzzRandom, task: Entry): Entry {
  if (!dice.chance(HOOKED_PERCENT)) return task
  if (dice.chance(60)) return { ...task, swap_method: 'hooks' }
  return { ...task, swap_method: 'engine', swap_engine: { kind: 'vllm', port: 8000 } }
}

// ── larger ──────────────────────────────────────────────────────────────────

function larger({ fleet, config, workload }: Drawn): Drawn {
  return {
    fleet: fleet.map((node) => {
      const gpu = node['gpu'] as Entry
      const swap = times(gpu['swap'] as Entry, 'out_mib_per_s', 'in_mib_per_s')
      return {
        ...times(node, 'safety_reserve_mib', 'host_swap_mib'),
        gpu: { ...times(gpu, 'vram_mib'), swap },
      }
    }),
    config: times(config, 'safety_reserve_mib'),
    workload: workload.map(({ task }) => {
      const { alloc, ...rest } = times(task as Entry, 'vram_mib')
      if (!Array.isArray(alloc)) return { task: rest }
      const steps = alloc as readonly (readonly [number, number])[]
      return { task: { ...rest, alloc: steps.map(([at, mib]): Value => [at, mib * LARGE_FACTOR]) } }
    }),
  }
}

function times(entry: Entry, ...fields: readonly string[]): Entry {
  const changed = fields.flatMap((field) =>
    typeof entry[field] === 'number' ? [[field, entry[field] * LARGE_FACTOR] as const] : [],
  )
  return { ...entry, ...Object.fromEntries(changed) }
}
