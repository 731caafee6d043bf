/**
 * Tasks, nodes, GPUs and the placements between them, as deciders see them: read-only. `state/facts.ts` has
 * the same as the engine changes it.
 */
import type {
  DurationMs,
  Instant,
  Mib,
  NoSwap,
  Percent,
  Residency,
  TaskState,
  DeviceKind,
  TaskIdentityKind,
} from '../../protocol/units.ts'
import type { EndCode } from './end-reason.ts'
import type { AutoCordon, NodeDrain, NodeStatus, QuarantinedAttempt } from './node.ts'
import { isBeingPrepared, type Preparation } from './preparation.ts'
import type { StartTrouble } from './start-refusal.ts'
import type { RequestCounts } from '../../protocol/message-fields.ts'
import type { TaskSpec } from '../../protocol/task.ts'
import type { GpuLoad } from './vram.ts'

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
  /** Nodes that prepare its next attempt, or have; empty while it is placed. */
  readonly preparations: readonly Preparation[]
  /** Digest of the image that its first attempt ran; null: not known. */
  readonly imageDigest: string | null
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
  /**
   * r: what it keeps in VRAM on each GPU while it is swapped out, as its server measured at the last
   * swap-out; 0 with the driver's method. It counts as noswap: it never leaves.
   */
  readonly residualMib: Mib
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
   * `state/index/eligibility-timers.ts`.
   */
  readonly isEligible: boolean
  /**
   * Its server has ended it, and the event with the result has not arrived: it is not a victim, and requests
   * nothing.
   */
  readonly isOver: boolean
  /** After a failed swap it is not a victim before this instant. */
  readonly backOffUntil: Instant
  /** It is swapped out, and its server reports requests for it. Absent: false. */
  readonly isWakeable?: boolean
  /** While it moves out: the entry it leaves for; null without one (operator, reserve). */
  readonly leavesFor: QueueEntry | null
  /** The pending stop; absent in records that are older than the field. */
  readonly stopping?: { readonly since?: Instant } | null
  /** Its entry in the node's queue: a return or a growth; null if it requests nothing. */
  readonly entry: QueueEntry | null
}

/** An attempt whose result may still arrive (R8). */
export interface GivenUp {
  readonly attempt: number
  readonly nodeId: string
  /** A later attempt has started: this result no longer ends the task. */
  readonly isOvertaken: boolean
}

/** A stop that was ordered and that the node has not confirmed. */
export interface Stopping {
  readonly then: 'cancelled' | 'completed' | 'failed' | 'pending'
  /** The reason, as text. */
  readonly reason: string
  /** The end reason to record; null: the reason that the node reports. */
  readonly endReason: string | null
  /** Why the task ends; not used when it becomes pending again. Absent in older records. */
  readonly code?: EndCode
  /** Exit code of an earlier attempt whose result ends the task (R8). */
  readonly exitCode?: number | null
  /** When the stop was ordered, and the grace period from then on. Absent in older records: no grace. */
  readonly since?: Instant
  readonly graceMs?: DurationMs
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

export interface Node {
  /** UUID. */
  readonly id: string
  readonly name: string
  readonly address: string
  readonly status: NodeStatus
  readonly isCordoned: boolean
  /**
   * The node could not start tasks and is closed for a while; null: it starts tasks as far as known.
   * Independent of an operator's cordon.
   */
  readonly autoCordon: AutoCordon | null
  /** Refused starts would close the node, but then more than half of the nodes would be closed. */
  readonly isCordonDenied: boolean
  /** An operator drains the node, which is cordoned meanwhile; null: no drain. */
  readonly drain: NodeDrain | null
  readonly gpus: readonly Gpu[]
  /** Names of the groups it belongs to, in code-unit order; empty means the common pool. */
  readonly groups: readonly string[]
  readonly overcommitOverride: Percent | null
  readonly reserveOverrideMib: Mib | null
  /** The kind of its GPUs. */
  readonly device: DeviceKind
  /** Its tasks can signal that they want the GPU; otherwise they are probed. */
  readonly signalsWanted: boolean
  /** It runs commands; otherwise only leases. */
  readonly allowExec: boolean
  /** Features of the server for tasks that require them (`FEATURES`), and names of later versions. */
  readonly features: readonly string[]
  /** Images of waiting tasks that it has, as last reported. */
  readonly images: readonly string[]
  /** Refused requests for tasks that are out, as last reported; null: none. */
  readonly requests: RequestCounts | null
  /** Tasks that it prepares, or has prepared, and that are not placed. */
  readonly preparationCount: number
  /** Maximum number of attempts that the server holds at once, as declared. */
  readonly maxAttempts: number
  /**
   * Attempts that count towards it: placed here, about to be, or named by the server without being a task's
   * current attempt.
   */
  readonly attemptCount: number
  /** The users that its tasks run as; null: not declared. It affects no decision. */
  readonly taskIdentity: TaskIdentityKind | null
  /** Host memory for swapped-out tasks, as the server declared it. */
  readonly hostSwapMib: Mib
  /**
   * Rate at which all its copies together move through host memory, as the server declared it; null: not
   * declared. It affects no decision.
   */
  readonly hostLinkMibPerS: number | null
  /** Host memory used by tasks that are swapped out or moving either way. */
  readonly hostUsedMib: Mib
  /** Host memory that admission has promised: all swappable tasks of every GPU where N + S exceeds C. */
  readonly hostPromisedMib: Mib
  /** Entries that wait for VRAM here, in queue order (swap/order.ts). */
  readonly queue: readonly QueueEntry[]
  readonly collector: QueueEntry | null
  /** Attempts that run there and that the store does not know. */
  readonly quarantine: readonly QuarantinedAttempt[]
  readonly registeredAt: Instant
  readonly lastSeenAt: Instant
  /** Order of registration. */
  readonly ordinal: number
  /** Position of its id among the ids of all nodes: the order by id, as a number. */
  readonly rank: number
}

/**
 * A head or an entry that has waited long reserves the GPU: later placements leave its shortfall free
 * (semantics 4 and 5).
 */
export interface Reservation {
  /** The holder: a pool's head, or an entry of the node's queue. */
  readonly by: 'head' | 'entry'
  readonly task: Task
  /** Its class in the queue: tasks later in queue order respect the reservation. */
  readonly queueClass: number
  readonly mib: Mib
  readonly isExclusive: boolean
}

export interface Gpu extends GpuLoad {
  readonly node: Node
  readonly index: number
  readonly model: string
  /** The percentage in effect on its node. */
  readonly overcommitPercent: Percent
  /** F: used by processes that the server did not start. */
  readonly foreignMib: Mib
  readonly placements: readonly Placement[]
  /** Those of its placements that are eligible for a swap-out, in any order. */
  readonly eligible: readonly Placement[]
  /** Demand of quarantined attempts: also counted as noswap and resident. */
  readonly quarantinedMib: Mib
  readonly quarantinedCount: number
  /** Pending tasks with VRAM reserved here, already counted in N or S. */
  readonly pendingClaimants: readonly QueueEntry[]
  /** Entries with VRAM reserved here, in the order of reservation, pending claimants included. */
  readonly claimants: readonly QueueEntry[]
  readonly reservations: readonly Reservation[]
  readonly exclusiveTask: Task | null
  /** VRAM of noswap placements, resident or moving. */
  readonly noswapResidentMib: Mib
  /** S_res: VRAM of swappable placements, resident or moving in or out. */
  readonly swappableResidentMib: Mib
  /** VRAM on its way out. */
  readonly movingOutMib: Mib
  /** VRAM of swappable, resident placements that are eligible for a swap-out, by class. */
  readonly eligibleMib: Mib
  readonly eligibleP0Mib: Mib
}

/** d − r: what leaves VRAM on each GPU when it is swapped out, and returns. */
export function movableMib({ demandMib, residualMib }: Pick<Placement, 'demandMib' | 'residualMib'>): Mib {
  return demandMib - residualMib
}

/** Returns true if it uses more VRAM than its request, by a growth; an exclusive task requested the GPU. */
export function isAboveRequest({ demandMib, task }: Pick<Placement, 'demandMib' | 'task'>): boolean {
  return task.spec.gpuMode === 'shared' && demandMib > task.spec.vramMib
}

type MayQueue = Pick<Task, 'isHeld' | 'trouble' | 'preparations'>

/** Returns true if a pending task may be in the queue: neither on hold, nor paused, nor being prepared. */
export function mayQueue(task: MayQueue): boolean {
  return isWaiting(task) && !isBeingPrepared(task)
}

/** Returns true if the wait of a pending task counts: it is neither on hold nor paused. */
export function isWaiting({ isHeld, trouble }: Pick<MayQueue, 'isHeld' | 'trouble'>): boolean {
  return !isHeld && trouble.pause === null
}
