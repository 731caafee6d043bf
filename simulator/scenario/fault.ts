/** What breaks in a scenario: every kind of fault with its figures, as the simulator enacts it (simulator/faults). */
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
  'gpu_lost',
  'slow_swap',
  'host_memory_short',
  'clock_drift',
] as const

export type FaultKind = (typeof FAULT_KINDS)[number]

/**
 * Where in a turn of its engine the controller dies, at the first commit that comes after the fault's instant and gets so far.
 * `before_persist`: decided; nothing is durable. `after_persist`: durable; nothing was published, answered or sent. `after_answers`:
 * clients and servers have their answers; the commands to servers are not sent. `after_effects`: those are sent as well; their answers
 * find nobody.
 */
export const PERSIST_POINTS = ['before_persist', 'after_persist', 'after_answers', 'after_effects'] as const

export type PersistPoint = (typeof PERSIST_POINTS)[number]

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
  /** How long it lasts. 0: it is over at once. Null: it is never healed; of a controller that dies: until its supervisor starts it again. */
  readonly forMs: DurationMs | null
}

/** Shares of messages are in permille. */
export type Fault = Timed &
  (
    | { readonly kind: 'crash' | 'bounce' | 'node_disk_lost'; readonly node: string }
    | { readonly kind: 'partition' | 'hold'; readonly link: Link }
    | { readonly kind: 'delay' | 'reorder'; readonly link: Link; readonly ms: DurationMs; readonly permille: number }
    | { readonly kind: 'drop' | 'duplicate'; readonly link: Link; readonly permille: number }
    | { readonly kind: 'restart_broker' | 'restart_controller' | 'second_controller' | 'fsync_error' }
    | { readonly kind: 'crash_controller'; readonly atPoint: PersistPoint | null }
    | { readonly kind: 'slow_disk'; readonly ms: DurationMs }
    | { readonly kind: 'disk_full'; readonly on: Machine }
    | { readonly kind: 'gpu_lost'; readonly node: string; readonly gpu: number }
    | { readonly kind: 'slow_swap'; readonly node: string; readonly factorPermille: number }
    | { readonly kind: 'host_memory_short'; readonly node: string; readonly mib: Mib }
    | { readonly kind: 'clock_drift'; readonly node: string; readonly ppm: number }
  )

/** Random faults between two instants, drawn from the seed of the run; whatever of them still holds is healed at `healAtMs`. */
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
