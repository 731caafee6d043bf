/** Draws a small fleet: few GPUs, so that tasks compete for them. */
import type { Mib } from '../../../protocol/units.ts'
import type { FuzzRandom } from './fuzz-random.ts'
import type { Entry, Value } from './document.ts'
import type { Features } from './features.ts'

/** Properties of a node that the other draws need. */
export interface DrawnNode {
  readonly name: string
  readonly gpus: number
  readonly vramMib: Mib
  readonly groups: readonly string[]
  readonly entry: Entry
}

export const GROUPS: readonly string[] = ['g1', 'g2']

const QUICK = { out_mib_per_s: 1024, in_mib_per_s: 1024, out_fixed_ms: 100, in_fixed_ms: 100 }
/** 30 s and more for half a GiB: tasks wake during their swap. */
const SLOW = { out_mib_per_s: 20, in_mib_per_s: 20, out_fixed_ms: 5000, in_fixed_ms: 5000 }

export function drawFleet(dice: FuzzRandom, { on, faults }: Features): DrawnNode[] {
  // The mass-silence brake applies from four nodes on.
  const most = faults.length > 0 && dice.chance(30) ? 6 : 3
  const count = on.has('several_nodes') ? dice.between(2, most) : 1
  return Array.from({ length: count }, (_, index) => drawNode(dice, `n${index}`, on))
}

function drawNode(dice: FuzzRandom, name: string, on: Features['on']): DrawnNode {
  const gpus = on.has('several_gpus') ? dice.between(1, 3) : 1
  const vramMib = dice.oneOf([1000, 1200, 1600])
  const groups = on.has('node_groups') && dice.chance(40) ? dice.some(GROUPS, 60) : []
  const isSet = on.has('node_settings')
  const settings: Record<string, Value> = {}
  if (isSet && dice.chance(40)) settings['safety_reserve_mib'] = dice.oneOf([0, 100, 200])
  if (isSet && dice.chance(40)) settings['overcommit_vram_percent'] = dice.oneOf([0, 50, 300, 1000])
  const isShort = on.has('little_host_memory') && dice.chance(50)
  const entry = {
    name,
    gpus,
    gpu: { vram_mib: vramMib, swap: on.has('slow_copies') && dice.chance(60) ? SLOW : QUICK },
    ...(groups.length > 0 ? { groups } : {}),
    ...settings,
    ...(isShort ? { host_swap_mib: dice.oneOf([0, 300, 700, 1200]) } : {}),
  }
  return { name, gpus, vramMib, groups, entry }
}

/** Leases and heartbeats are short in a world with faults, so that a run of minutes contains many of them. */
export function drawConfig(dice: FuzzRandom, { on, faults }: Features): Entry {
  const isCalm = faults.length === 0
  const config: Record<string, Value> = {
    default_vram_overcommit_percent: dice.oneOf([0, 20, 50, 100, 300, 1000]),
    safety_reserve_mib: on.has('reserve') ? dice.oneOf([50, 100, 150]) : 0,
    idle_swap_out_seconds: isCalm ? dice.oneOf([10, 60, 60, 300]) : dice.oneOf([3, 10, 30]),
    swap_in_aging_seconds: dice.oneOf(on.has('quick_waits') ? [10, 30] : [120, 600]),
    reservation_after_seconds: dice.oneOf(on.has('quick_waits') ? [10, 30] : [60, 300]),
  }
  if (!isCalm) {
    const [heartbeat, lease] = dice.oneOf([
      [1, 15],
      [1, 15],
      [2, 15],
      [3, 20],
      [10, 50],
    ] as const)
    config['heartbeat_seconds'] = heartbeat
    config['run_lease_seconds'] = lease
  }
  if (on.has('max_residency')) config['max_residency_seconds'] = dice.oneOf([10, 30, 120])
  if (on.has('queue_aging')) config['queue_aging_seconds'] = dice.oneOf([20, 300])
  if (on.has('strategy')) config['placement_strategy'] = dice.oneOf(['spread', 'fifo'])
  if (on.has('few_seats')) config['max_tasks_per_gpu'] = dice.oneOf([1, 2, 3])
  return config
}
