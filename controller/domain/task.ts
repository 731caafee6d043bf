/**
 * Tasks and their placements, as deciders see them: read-only. Only `engine/` changes them (see
 * `engine/live.ts`).
 */
import type { DurationMs, GpuMode, Instant, Mib, NoSwap, OnNodeLoss, Priority } from '../../protocol/units.ts'
import type { EndCode } from './end-reason.ts'
import type { Gpu, Node } from './node.ts'
import type { StartTrouble } from './start-refusal.ts'

/**
 * `pending` has no placement; `assigned`, `running` and `unreachable` have one; the others are final and
 * never change.
 */
export type TaskState = 'pending' | 'assigned' | 'running' | 'unreachable' | FinalState
export type FinalState = 'completed' | 'failed' | 'cancelled' | 'lost'

/** The second axis: a swapped-out task is still a running one. `none`: not started on the node yet. */
export type Residency = 'none' | 'resident' | 'swapping_out' | 'swapped_out' | 'swapping_in'

/**
 * What a client asked for. `noswap`, `priority`, `labels`, and while pending `vramMib`, `groups` and
 * `onNodeLoss`, may be changed later.
 */
export interface TaskSpec {
  /** A UUID; in scenarios the name given. */
  readonly id: string
  /** Submission number: total order of arrival. */
  readonly seq: number
  readonly name: string
  /** Demand per GPU; 0 only for an exclusive task, which then takes all a GPU has. */
  readonly vramMib: Mib
  readonly gpuCount: number
  readonly gpuMode: GpuMode
  readonly noswap: NoSwap
  readonly priority: Priority
  /** Groups it may run in, any of them will do; empty means the common pool. */
  readonly groups: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly owner: string | null
  /** What the GPU server runs; null makes the task a lease. */
  readonly command: readonly string[] | null
  readonly maxRuntimeMs: DurationMs | null
  /** What it gets between SIGTERM and SIGKILL; null or left out: what the cluster gives. */
  readonly stopGraceMs?: DurationMs | null
  readonly onNodeLoss: OnNodeLoss
  /** How many times it is requeued after attempts that ended soon after their start; null: no limit. */
  readonly maxRequeues: number | null
  readonly submittedAt: Instant
}

export interface Task {
  readonly spec: TaskSpec
  readonly state: TaskState
  /** An operator holds it back from being placed. */
  readonly isHeld: boolean
  /** How often it was assigned; the current attempt's number. */
  readonly attempt: number
  /** Since when it waits in the pending queue; of a placed or final task, of its last wait. */
  readonly pendingSince: Instant
  /** Where it sits; null exactly while it is pending or final. */
  readonly placement: Placement | null
  /** Set by the cycle while a pending task owns bytes on a node that victims still have to leave. */
  readonly placementEntry: QueueEntry | null
  /** Nodes that refused it, with the number of the message that did: no choice before a later snapshot. */
  readonly refusedBy: ReadonlyMap<string, number> | null
  /** Nodes that are no choice for the rest of this cycle: its victims there did not cover after all. */
  readonly avoidedNow: ReadonlySet<Node> | null
  /** What went wrong with its starts, and whether it waits because of that. */
  readonly trouble: StartTrouble
  readonly firstStartedAt: Instant | null
  readonly finishedAt: Instant | null
  readonly exitCode: number | null
  /** Why it ended; null exactly while it has not. */
  readonly endCode: EndCode | null
  /** The same in words, when there is more to say than the code does. */
  readonly endReason: string | null
  readonly swapOuts: number
  /** Where its last attempt was; null when it was never placed. */
  readonly lastNodeId: string | null
}

export interface Placement {
  readonly task: Task
  readonly node: Node
  readonly gpus: readonly Gpu[]
  readonly attempt: number
  /** d: demand per GPU = max(declared, highest granted in this attempt). */
  readonly demandMib: Mib
  /** The noswap value this placement is accounted under (N or S). */
  readonly noswap: NoSwap
  readonly residency: Residency
  /** Counts residency changes, so that a stale swap command is recognised (R12). */
  readonly generation: number
  readonly assignedAt: Instant
  readonly startedAt: Instant | null
  readonly wantsGpu: boolean
  /** Since when it wants or does not want the GPU. */
  readonly wantsSince: Instant
  /** The later of its last GPU use and its last start or swap-in. */
  readonly idleSince: Instant
  readonly residentSince: Instant
  /**
   * Idle for the idle period, not backing off: counted in its GPUs' eligible bytes. Kept by
   * `engine/node/eligibility-timers.ts`.
   */
  readonly isEligible: boolean
  /**
   * Its server has ended it, and the event that says how is under way: it is no victim, and asks for nothing.
   */
  readonly isOver: boolean
  /** After a failed swap it is no victim before this instant. */
  readonly backOffUntil: Instant
  /** While it moves out: the entry it leaves for; null when nobody asked (operator, reserve). */
  readonly leavesFor: QueueEntry | null
  /**
   * A stop was ordered then, and its node has not said yet that it has ended; left out in records that are
   * older than the field.
   */
  readonly stopping?: { readonly since?: Instant } | null
  /** Its own entry in the node's queue: a return or a growth; null when it asks for nothing. */
  readonly entry: QueueEntry | null
}

export type EntryKind = 'swap_in' | 'growth' | 'placement'

/** One line of a node's queue: somebody waits for bytes there. Semantics section 5, "Return". */
export interface QueueEntry {
  readonly kind: EntryKind
  readonly task: Task
  readonly node: Node
  readonly gpus: readonly Gpu[]
  /** What it needs per GPU: the whole d, or the step of a growth. */
  readonly needMib: Mib
  /** A placement's is its submission. */
  readonly askedAt: Instant
  /** It owns its bytes on all its GPUs until it is resident. */
  readonly hasReserved: boolean
  readonly isCollector: boolean
}

/** Returns true if a pending task may be in the queue: it is not on hold and not paused. */
export function mayQueue({ isHeld, trouble }: Pick<Task, 'isHeld' | 'trouble'>): boolean {
  return !isHeld && trouble.pause === null
}

export function isFinal(state: TaskState): state is FinalState {
  return state === 'completed' || state === 'failed' || state === 'cancelled' || state === 'lost'
}

/** The three lists of the specification (section 3). */
export function listOf(state: TaskState): 'running' | 'pending' | 'completed' {
  if (state === 'pending') return 'pending'
  return isFinal(state) ? 'completed' : 'running'
}
