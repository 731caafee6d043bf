/**
 * What breaks in a scenario: every kind of fault with its figures, as the simulator enacts it
 * (simulator/faults).
 */
import type { DurationMs, Mib } from '../../protocol/units.ts'

/** In the order of the documentation; also the names of the counters that say how often each has fired. */
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
  'slow_disk',
  'disk_full',
  'fsync_error',
  'store_set_back',
  'gpu_lost',
  'slow_swap',
  'host_memory_short',
  'clock_drift',
] as const

export type FaultKind = (typeof FAULT_KINDS)[number]

/**
 * Kinds that a swarm draws unless it names its own. A store that goes back loses what was acknowledged: a
 * swarm has it only by name.
 */
export const SWARM_KINDS: readonly FaultKind[] = FAULT_KINDS.filter((kind) => kind !== 'store_set_back')

/**
 * Where in a turn of its engine the controller dies, at the first commit that comes after the fault's instant
 * and gets so far. `before_persist`: decided; nothing is durable. `after_persist`: durable; nothing was
 * published, answered or sent. `after_answers`: clients and servers have their answers; the commands to
 * servers are not sent. `after_effects`: those are sent as well; their answers find nobody.
 */
export const PERSIST_POINTS = ['before_persist', 'after_persist', 'after_answers', 'after_effects'] as const

export type PersistPoint = (typeof PERSIST_POINTS)[number]

/**
 * How the controller's store loses a part of its history. `silent`: the data folder went back, and its mark
 * file with it, so that only the GPU servers can tell. `accepted`: the store is behind its mark, and the
 * operator started it with `--accept-loss`. `restored`: `headroom restore` of a backup. After the last two
 * the epoch is raised and the controller starts in recovery.
 */
export const LOSSES = ['silent', 'accepted', 'restored'] as const

export type Loss = (typeof LOSSES)[number]

/**
 * Earlier states of the store that have a name. `start`: as the run began. `epoch_start`: as the present
 * controller read it.
 */
export const STORE_POINTS = ['start', 'epoch_start'] as const

export type StorePoint = (typeof STORE_POINTS)[number]

/** The controller's process, or the machine of the node with that name. */
export type Machine = 'controller' | { readonly node: string }

/** Messages between the controller and some nodes. Nodes do not speak to each other. */
export interface Link {
  /** Null: every node. */
  readonly nodes: readonly string[] | null
  readonly direction: 'both' | 'to_controller' | 'from_controller'
}

interface Timed {
  /** Since the start of the run. */
  readonly atMs: DurationMs
  /**
   * How long it lasts. 0: it is over at once. Null: it is never healed; of a controller that dies: until its
   * supervisor starts it again.
   */
  readonly forMs: DurationMs | null
}

/** A type for each kind, so that a test of `kind` tells which it is. */
type Each<K extends FaultKind, F> = K extends FaultKind ? Timed & { readonly kind: K } & Readonly<F> : never

/** Shares of messages are in permille. */
export type Fault =
  | Each<'crash' | 'bounce' | 'node_disk_lost', { node: string }>
  | Each<'partition' | 'hold', { link: Link }>
  | Each<'delay' | 'reorder', { link: Link; ms: DurationMs; permille: number }>
  | Each<'drop' | 'duplicate', { link: Link; permille: number }>
  | Each<'restart_broker' | 'restart_controller' | 'second_controller' | 'fsync_error', object>
  | Each<'crash_controller', { atPoint: PersistPoint | null }>
  | Each<'slow_disk', { ms: DurationMs }>
  | Each<'store_set_back', { to: StorePoint | { readonly backMs: DurationMs }; loss: Loss }>
  | Each<'disk_full', { on: Machine }>
  | Each<'gpu_lost', { node: string; gpu: number }>
  | Each<'slow_swap', { node: string; factorPermille: number }>
  | Each<'host_memory_short', { node: string; mib: Mib }>
  | Each<'clock_drift', { node: string; ppm: number }>

/**
 * Random faults between two instants, drawn from the seed of the run; whatever of them still holds is healed
 * at `healAtMs`.
 */
export interface Swarm {
  readonly kind: 'swarm'
  readonly fromMs: DurationMs
  /** No fault begins then or later. */
  readonly untilMs: DurationMs
  readonly healAtMs: DurationMs
  readonly kinds: readonly FaultKind[]
  readonly ratePerHour: number
}

/** One entry of `faults`, in the order of the file. */
export type FaultItem = Fault | Swarm
