/** Nodes and their GPUs, as deciders see them: read-only. Only `engine/` changes them. */
import type { DeviceKind, TaskIdentityKind } from '../../protocol/messages.ts'
import type { Instant, Mib, Percent } from '../../protocol/units.ts'
import type { QuarantinedAttempt } from './quarantine.ts'
import type { GpuLoad } from './vram.ts'
import type { Placement, QueueEntry, Task } from './task.ts'

/** `up`: heard lately. `suspect`: silent, no placement. `unreachable`: its lease is over. */
export type NodeStatus = 'up' | 'suspect' | 'unreachable'

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

/** The controller closed the node: starts were refused there for reasons that do not depend on the task. */
export interface AutoCordon {
  readonly since: Instant
  /** Code of the last refusal, and the node's message. */
  readonly code: string
  readonly reason: string
  /** From then on one task may be placed there as a trial. */
  readonly nextTrialAt: Instant
  readonly failedTrials: number
  /** The next task that fits is the trial. */
  readonly isTrialOpen: boolean
  /** The attempt that is the trial, or null. */
  readonly trial: { readonly taskId: string; readonly attempt: number } | null
}

/**
 * Tasks end in their own time; from `movesAt` on those that may be requeued are stopped and wait for another
 * node.
 */
export interface NodeDrain {
  readonly since: Instant
  /** Null: no task is moved. */
  readonly movesAt: Instant | null
  readonly by: string
  /** The event of the order: the cause of what follows. */
  readonly event: number
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
