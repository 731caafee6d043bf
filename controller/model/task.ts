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

/** The second axis: a swapped-out task is still running. `none`: not started on the node yet. */
export type Residency = 'none' | 'resident' | 'swapping_out' | 'swapped_out' | 'swapping_in'

/**
 * The client's request. `noswap`, `priority`, `labels`, and while pending `vramMib`, `groups` and
 * `onNodeLoss`, may be changed later.
 */
export interface TaskSpec {
  /** A UUID; in scenarios the given name. */
  readonly id: string
  /** Submission number: total order of arrival. */
  readonly seq: number
  readonly name: string
  /** Demand per GPU; 0 only for an exclusive task, which then takes a whole GPU. */
  readonly vramMib: Mib
  readonly gpuCount: number
  readonly gpuMode: GpuMode
  readonly noswap: NoSwap
  readonly priority: Priority
  /** Groups it may run in, any of them; empty means the common pool. */
  readonly groups: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly owner: string | null
  /** The command that the GPU server runs; null makes the task a lease. */
  readonly command: readonly string[] | null
  readonly maxRuntimeMs: DurationMs | null
  /** Grace period between SIGTERM and SIGKILL; null or omitted: the default of the cluster. */
  readonly stopGraceMs?: DurationMs | null
  readonly onNodeLoss: OnNodeLoss
  /** Maximum number of requeues after attempts that ended soon after their start; null: no limit. */
  readonly maxRequeues: number | null
  readonly submittedAt: Instant
}

export interface Task {
  readonly spec: TaskSpec
  readonly state: TaskState
  /** An operator put it on hold. */
  readonly isHeld: boolean
  /** Number of assignments; the current attempt's number. */
  readonly attempt: number
  /** When its wait in the pending queue began; for a placed or final task, its last wait. */
  readonly pendingSince: Instant
  /** Its placement; null exactly while it is pending or final. */
  readonly placement: Placement | null
  /**
   * Its entry in a node's queue: VRAM is reserved there while victims leave, or it waits to become the
   * collector.
   */
  readonly placementEntry: QueueEntry | null
  /** Nodes that refused it, with the number of the refusing message: excluded until a later snapshot. */
  readonly refusedBy: ReadonlyMap<string, number> | null
  /** Nodes avoided for the rest of this cycle: its victims there did not cover it after all. */
  readonly avoidedNow: ReadonlySet<Node> | null
  /** Failed starts, and the pause because of them. */
  readonly trouble: StartTrouble
  readonly firstStartedAt: Instant | null
  readonly finishedAt: Instant | null
  readonly exitCode: number | null
  /** Why it ended; null exactly while it has not ended. */
  readonly endCode: EndCode | null
  /** The reason as text, if there are details beyond the code. */
  readonly endReason: string | null
  readonly swapOuts: number
  /** The node of its last attempt; null if it was never placed. */
  readonly lastNodeId: string | null
}

export interface Placement {
  readonly task: Task
  readonly node: Node
  readonly gpus: readonly Gpu[]
  readonly attempt: number
  /** d: demand per GPU = max(declared, highest granted in this attempt). */
  readonly demandMib: Mib
  /** The noswap value under which this placement is accounted (N or S). */
  readonly noswap: NoSwap
  readonly residency: Residency
  /** Counts residency changes, so that a stale swap command is recognised (R12). */
  readonly generation: number
  readonly assignedAt: Instant
  readonly startedAt: Instant | null
  readonly wantsGpu: boolean
  /** Since when it wants, or does not want, the GPU. */
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
   * Its server has ended it, and the event with the result has not arrived: it is no victim, and requests
   * nothing.
   */
  readonly isOver: boolean
  /** After a failed swap it is no victim before this instant. */
  readonly backOffUntil: Instant
  /** While it moves out: the entry it leaves for; null without one (operator, reserve). */
  readonly leavesFor: QueueEntry | null
  /** The pending stop; absent in records that are older than the field. */
  readonly stopping?: { readonly since?: Instant } | null
  /** Its entry in the node's queue: a return or a growth; null if it requests nothing. */
  readonly entry: QueueEntry | null
}

export type EntryKind = 'swap_in' | 'growth' | 'placement'

/** One line of a node's queue: a request for VRAM there. Semantics section 5, "Return". */
export interface QueueEntry {
  readonly kind: EntryKind
  readonly task: Task
  readonly node: Node
  readonly gpus: readonly Gpu[]
  /** Demand per GPU: the whole d, or the step of a growth. */
  readonly needMib: Mib
  /** For a placement, its submission. */
  readonly askedAt: Instant
  /** VRAM is reserved for it on all its GPUs until it is resident. */
  readonly hasReserved: boolean
  readonly isCollector: boolean
}

/** Returns true if a pending task may be in the queue: it is neither on hold nor paused. */
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
