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
   * It could not start tasks, and takes none for a while; null: it does, as far as is known. An operator's
   * cordon is another matter.
   */
  readonly autoCordon: AutoCordon | null
  /** It would be closed for what it refused, and more than half of the nodes would be then. */
  readonly isCordonDenied: boolean
  /** An operator empties it; null when nobody does. It is cordoned as long. */
  readonly drain: NodeDrain | null
  readonly gpus: readonly Gpu[]
  /** Names of the groups it belongs to, in code-unit order; empty means the common pool. */
  readonly groups: readonly string[]
  readonly overcommitOverride: Percent | null
  readonly reserveOverrideMib: Mib | null
  /** What its GPUs are. */
  readonly device: DeviceKind
  /** Its tasks can say that they want the GPU; otherwise they are probed. */
  readonly signalsWanted: boolean
  /** It runs commands; otherwise only leases. */
  readonly allowExec: boolean
  /** Attempts that the server holds at once, as it declared. */
  readonly maxAttempts: number
  /**
   * Attempts that count towards it: placed here, about to be, or named by the server without being a task's
   * current attempt.
   */
  readonly attemptCount: number
  /** The users that its tasks run as; null: the server has not said. No decision rests on it. */
  readonly taskIdentity: TaskIdentityKind | null
  /** Host memory for swapped-out bytes, as the server declared it. */
  readonly hostSwapMib: Mib
  /**
   * What all its copies together move through host memory, as the server declared it; null: it has not. No
   * decision rests on it.
   */
  readonly hostLinkMibPerS: number | null
  /** Bytes swapped out or moving (either way) in host memory. */
  readonly hostUsedMib: Mib
  /** Host memory that admission has promised: all swappable tasks of every GPU where N + S exceeds C. */
  readonly hostPromisedMib: Mib
  /** Who waits for bytes here, in queue order (swap/order.ts). */
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
 * The controller closed the node by itself: starts were refused there for reasons that do not depend on the
 * task.
 */
export interface AutoCordon {
  readonly since: Instant
  /** Of the last refusal, and the node's own words. */
  readonly code: string
  readonly reason: string
  /** From then on one task may be placed there, to see whether it starts. */
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
  /** Null: nobody is moved. */
  readonly movesAt: Instant | null
  readonly by: string
  /** The event that said so: the cause of what follows. */
  readonly event: number
}

/**
 * A head that waited long, or an entry that did: later placements leave it what it misses (semantics 4 and
 * 5).
 */
export interface Reservation {
  /** Whose it is: a pool's head, or an entry of the node's queue. */
  readonly by: 'head' | 'entry'
  readonly task: Task
  /** The class it is queued under: tasks later in the queue order respect the hold. */
  readonly queueClass: number
  readonly mib: Mib
  readonly isExclusive: boolean
}

export interface Gpu extends GpuLoad {
  readonly node: Node
  readonly index: number
  readonly model: string
  /** The percentage that applies to its node. */
  readonly overcommitPercent: Percent
  /** F: used by processes the server did not start. */
  readonly foreignMib: Mib
  readonly placements: readonly Placement[]
  /** Of quarantined attempts: counted as noswap and resident, too. */
  readonly quarantinedMib: Mib
  readonly quarantinedCount: number
  /** Pending tasks that own bytes here and are counted in N or S already. */
  readonly pendingClaimants: readonly QueueEntry[]
  /** Entries that own bytes here, claims included. */
  readonly claimants: readonly QueueEntry[]
  readonly reservations: readonly Reservation[]
  readonly exclusiveTask: Task | null
  /** Resident or moving bytes of noswap placements. */
  readonly noswapResidentMib: Mib
  /** S_res: swappable bytes resident or moving in or out. */
  readonly swappableResidentMib: Mib
  /** Bytes that are on their way out. */
  readonly movingOutMib: Mib
  /** Bytes of swappable, resident placements that are ripe for a swap-out, by class. */
  readonly eligibleMib: Mib
  readonly eligibleP0Mib: Mib
}
