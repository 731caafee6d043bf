/** The kinds of faults and their parameters, as `simulator/world` injects them. */
import type { DurationMs, Mib } from '../../protocol/units.ts'

/** In the order of the documentation. Also the names of the counters of injected faults. */
export const FAULT_KINDS = [
  'crash',
  'bounce',
  'node_disk_lost',
  'partition',
  'hold',
  'delay',
  'drop',
  'duplicate',
  'reorder',
  'restart_broker',
  'restart_controller',
  'crash_controller',
  'second_controller',
  'lease_lost',
  'store_frozen',
  'store_failover',
  'slow_disk',
  'disk_full',
  'fsync_error',
  'store_set_back',
  'gpu_lost',
  'slow_swap',
  'host_memory_short',
  'clock_drift',
  'hook_hangs',
  'hook_late',
  'hook_lies',
  'hook_errs',
  'hook_dies',
] as const

export type FaultKind = (typeof FAULT_KINDS)[number]

/** How the swap hooks of tasks misbehave (`hooks_fail`), in the order of `HOOK_FAILURES`. */
export const HOOK_FAULTS = ['hook_hangs', 'hook_late', 'hook_lies', 'hook_errs', 'hook_dies'] as const
export type HookFault = (typeof HOOK_FAULTS)[number]
export const HOOK_FAILURES = ['hang', 'late', 'lie', 'error', 'die'] as const

/** A world in which these may occur has two controllers: one leads, the other waits. */
export const SUCCESSION_KINDS: readonly FaultKind[] = ['lease_lost', 'store_frozen', 'store_failover']

/**
 * Kinds that a swarm draws by default. A store that is set back loses acknowledged data, few workloads have
 * hooks, and few clusters have a second controller, so a swarm draws them only if they are named.
 */
export const SWARM_KINDS: readonly FaultKind[] = FAULT_KINDS.filter(
  (kind) =>
    kind !== 'store_set_back' &&
    !SUCCESSION_KINDS.includes(kind) &&
    !HOOK_FAULTS.some((fault) => fault === kind),
)

/**
 * Points of a commit at which the controller crashes, at the first commit after the fault's instant that
 * reaches the point. `before_persist`: decided, nothing durable. `after_persist`: durable; nothing published,
 * answered or sent. `after_answers`: answered; commands to servers not sent. `after_effects`: commands sent;
 * their answers are lost.
 */
export const PERSIST_POINTS = ['before_persist', 'after_persist', 'after_answers', 'after_effects'] as const

export type PersistPoint = (typeof PERSIST_POINTS)[number]

/**
 * How the leader of two controllers loses its lease. `cut`: its requests do not reach the store.
 * `unanswered`: they do, and their answers are lost. `paused`: its process is stopped, and continues at the
 * end.
 */
export const LEASE_LOSSES = ['cut', 'unanswered', 'paused'] as const

export type LeaseLoss = (typeof LEASE_LOSSES)[number]

/**
 * How the controller's store loses part of its history. `silent`: the data folder was set back with its mark
 * file, so only the GPU servers can detect it. `accepted`: the store is behind its mark and the operator
 * started it with `--accept-loss`. `restored`: `headroom restore` of a backup. After the last two the epoch
 * increases and the controller starts in recovery.
 */
export const LOSSES = ['silent', 'accepted', 'restored'] as const

export type Loss = (typeof LOSSES)[number]

/**
 * Named earlier states of the store. `start`: at the start of the run. `epoch_start`: as the current
 * controller read it.
 */
export const STORE_POINTS = ['start', 'epoch_start'] as const

export type StorePoint = (typeof STORE_POINTS)[number]

/** The controller's process, or the machine of the node with that name. */
export type Machine = 'controller' | { readonly node: string }

/** Messages between the controller and nodes. Nodes do not exchange messages. */
export interface Link {
  /** Null: every node. */
  readonly nodes: readonly string[] | null
  readonly direction: 'both' | 'to_controller' | 'from_controller'
}

interface Timed {
  /** Since the start of the run. */
  readonly atMs: DurationMs
  /** Duration. 0: ends at once. Null: never heals; a crashed controller is restarted by its supervisor. */
  readonly forMs: DurationMs | null
}

/** One type per kind, so that a test of `kind` narrows the type. */
type Each<K extends FaultKind, F> = K extends FaultKind ? Timed & { readonly kind: K } & Readonly<F> : never

/** Shares of messages are in permille. */
export type Fault =
  | Each<'crash' | 'bounce' | 'node_disk_lost', { node: string }>
  | Each<'partition' | 'hold', { link: Link }>
  | Each<'delay' | 'reorder', { link: Link; ms: DurationMs; permille: number }>
  | Each<'drop' | 'duplicate', { link: Link; permille: number }>
  | Each<'restart_broker' | 'restart_controller' | 'second_controller' | 'fsync_error', object>
  | Each<'store_frozen' | 'store_failover', object>
  | Each<'lease_lost', { how: LeaseLoss }>
  | Each<'crash_controller', { atPoint: PersistPoint | null }>
  | Each<'slow_disk', { ms: DurationMs }>
  | Each<'store_set_back', { to: StorePoint | { readonly backMs: DurationMs }; loss: Loss }>
  | Each<'disk_full', { on: Machine }>
  | Each<'gpu_lost', { node: string; gpu: number }>
  | Each<'slow_swap', { node: string; factorPermille: number }>
  | Each<'host_memory_short', { node: string; mib: Mib }>
  | Each<'clock_drift', { node: string; ppm: number }>
  | Each<HookFault, { node: string; keepsMib: Mib | null }>

/**
 * Random faults between two instants, drawn from the seed of the run. Remaining faults heal at `healAtMs`.
 */
export interface Swarm {
  readonly kind: 'swarm'
  readonly fromMs: DurationMs
  /** No fault begins at or after this time. */
  readonly untilMs: DurationMs
  readonly healAtMs: DurationMs
  readonly kinds: readonly FaultKind[]
  readonly ratePerHour: number
}

/** One entry of `faults`, in the order of the file. */
export type FaultItem = Fault | Swarm
