/** The paths that seeds must take, and how many seeds that needs. */
import { FAULT_KINDS, type FaultKind } from '../scenario/fault.ts'

/** So many seeds take every usual path; the rare ones need ten thousand. */
export const SEEDS_FOR_USUAL = 1_000
export const SEEDS_FOR_RARE = 10_000

/** They do something only where tasks are swapped out just then. */
const RARE_FAULTS: readonly FaultKind[] = ['host_memory_short', 'slow_swap']

const USUAL: readonly string[] = [
  'placed now',
  'placed after_swap',
  'placed again',
  'placed on several GPUs',
  'ended completed',
  'ended failed',
  'ended cancelled',
  'ended lost',
  'lost because its lease had ended',
  'lost because its server has lost its state',
  'lost because its server is unreachable',
  'lost because nothing was left of it when the server came back',
  'returned drained',
  'returned expired',
  'returned lease_ended',
  'returned lost',
  'returned never_seen',
  'returned no_lease',
  'returned no_vram',
  'returned node_unreachable',
  'returned start_unconfirmed',
  'returned requeued',
  'start accepted',
  'start running',
  'start finished',
  'start gone',
  'start never_seen',
  'start refused expired',
  'start refused no_lease',
  'start refused no_vram',
  'start refused old_attempt',
  'stop accepted',
  'stop finished',
  'told to stop',
  'state_reset',
  'task_unreachable',
  'task_reachable',
  'node suspect',
  'node unreachable',
  'freeze begins',
  'freeze is lifted',
  'growth_granted',
  'growth refused WAITING_PHYSICAL_VRAM',
  'growth refused RESIDENCY_IMPOSSIBLE',
  'growth refused SWAP_SPACE_EXHAUSTED',
  'grant accepted',
  'refuse_growth accepted',
  'swap for swap_in',
  'swap for growth',
  'swap for placement',
  'victim non_p0',
  'victim p0',
  'round closed non_p0',
  'swap_out accepted',
  'swap_in accepted',
  'swap_in_decided',
  'moved because ordered',
  'moved because woke_while_locked',
  'collector swap_in',
  'reservation of the head',
  'task_held',
  'task_released',
  'task_updated',
  'config_changed',
  'node_config_changed',
  'node_drain',
  'group_changed',
  'waits NO_ELIGIBLE_VICTIM',
  'waits SWAPPING_OUT_FOR_YOU',
  'waits WAITING_VRAM',
  'waits WAITING_PHYSICAL_VRAM',
  'waits WOULD_STRAND',
  'waits FRAGMENTED',
  'waits SWAP_SPACE_EXHAUSTED',
  'waits MAX_TASKS_PER_GPU',
  'waits WAITING_EXCLUSIVE_GPU',
  'waits NODES_OFFLINE',
  'waits NODES_CORDONED',
  'waits RESERVED_FOR_ANOTHER',
  'waits QUEUED_BEHIND',
  'waits NEVER_RESIDENT',
  'waits AWAITING_NODE_ACK',
  'waits HELD',
  'waits GROUP_NOT_FOUND',
  ...FAULT_KINDS.filter((kind) => !RARE_FAULTS.includes(kind)).map((kind) => `fault ${kind}`),
]

const RARE: readonly string[] = [
  'round closed p0',
  'several GPUs short',
  'collector placement',
  'swap_ordered',
  'duplicate_node',
  'freeze is released',
  'set_noswap accepted',
  'start refused disk_failed',
  'start refused other_boot',
  'swap_in refused expired',
  'swap_in refused no_vram',
  'swap_out refused expired',
  'swap_out refused no_lease',
  'swap_out refused wants_gpu',
  'swap_out refused contrary',
  'swap_out finished',
  'grant refused no_vram',
  'grant refused expired',
  'swap failed no_vram',
  'swap failed no_host_memory',
  'swap failed no_lease',
  'waits NEVER_FITS',
  'waits GROUP_EMPTY',
  'waits EXCEEDS_NODE_GPU_COUNT',
  'waits RESIDENCY_IMPOSSIBLE',
  ...RARE_FAULTS.map((kind) => `fault ${kind}`),
]

/** Paths that so many seeds should have taken and did not. */
export function missingPaths(counts: ReadonlyMap<string, number>, seeds: number): string[] {
  const wanted = [...(seeds >= SEEDS_FOR_USUAL ? USUAL : []), ...(seeds >= SEEDS_FOR_RARE ? RARE : [])]
  return wanted.filter((path) => (counts.get(path) ?? 0) === 0)
}

/** Every path that was taken or should be, by name, with how often. */
export function coverageRows(counts: ReadonlyMap<string, number>): string[] {
  const names = new Set([...counts.keys(), ...USUAL, ...RARE])
  return [...names].sort((a, b) => (a < b ? -1 : 1)).map((name) => `${String(counts.get(name) ?? 0).padStart(10)}  ${name}`)
}
