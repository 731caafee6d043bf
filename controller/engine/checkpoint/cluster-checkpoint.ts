/**
 * The state of a cluster between two inputs, as JSON values: enough to continue with the same decisions.
 * References are numbers: nodes in the order of `nodes`, GPUs by index, entries by position in their node's
 * queue, tasks in the order of `tasks`. Indexes are rebuilt; only the flags that say whether they must be
 * processed are kept.
 */
import type { Instant, Mib, Microseconds } from '../../../protocol/units.ts'
import type { TimerId } from '../../ports/clock.ts'
import type { Config } from '../../model/config.ts'
import type { Group } from '../../model/group.ts'
import type { FinalState, TaskSpec } from '../../model/task.ts'
import type { SubmissionKeyRecord } from '../../ports/store.ts'
import type { ActivityRuns } from '../../ports/twin.ts'
import type { RequestKind } from '../../policy/placement/shape.ts'
import type { CapacityFigures } from '../../state/facts.ts'
import type { SwapTotals } from '../../state/facts.ts'
import type { EpochHistory } from '../../state/epoch-history.ts'
import type { Recovery } from '../../model/controller-status.ts'
import type { RequeueFreeze, BrokerAbsence, AheadNode } from '../../model/controller-status.ts'
import type { SwapMark } from '../../policy/swap/rounds.ts'
import type { EntryFields, GpuFields, NodeFields, PlacementFields, TaskFields } from './live-fields.ts'

export type TaskNumber = number
export type NodeNumber = number
/** Position in the node's queue. */
export type EntryNumber = number
export type GpuNumber = readonly [node: NodeNumber, gpu: number]

export interface TaskCheckpoint extends TaskFields {
  readonly placement: PlacementCheckpoint | null
  /** The node and entry number of its placement entry. */
  readonly placementEntry: readonly [NodeNumber, EntryNumber] | null
  readonly isQueued: boolean
  /** The current cycle has set it aside in its queue. */
  readonly isAside: boolean
  readonly refusedBy: readonly (readonly [nodeId: string, seq: number])[] | null
  readonly avoidedNow: readonly NodeNumber[] | null
}

export interface PlacementCheckpoint extends PlacementFields {
  readonly node: NodeNumber
  readonly gpus: readonly number[]
  readonly leavesFor: EntryNumber | null
  readonly entry: EntryNumber | null
}

export interface EntryCheckpoint extends EntryFields {
  readonly task: TaskNumber
  readonly gpus: readonly number[]
  readonly failedAttempt: {
    readonly ledgerVersion: number
    readonly hostUsedMib: Mib
    readonly collector: EntryNumber | null
  } | null
}

export interface NodeCheckpoint extends NodeFields {
  readonly gpus: readonly GpuCheckpoint[]
  readonly queue: readonly EntryCheckpoint[]
  readonly collector: EntryNumber | null
  readonly wake: TimerId | null
  readonly drainTimer: TimerId | null
  readonly eagerTimer: TimerId | null
  readonly trialTimer: TimerId | null
}

export interface GpuCheckpoint extends GpuFields {
  readonly placements: readonly TaskNumber[]
  readonly pendingClaimants: readonly EntryNumber[]
  readonly claimants: readonly EntryNumber[]
  readonly reservations: readonly ReservationCheckpoint[]
  readonly exclusiveTask: TaskNumber | null
  readonly rounds: Readonly<Record<'p0' | 'non_p0', RoundCheckpoint>>
  readonly meter: MeterCheckpoint
  readonly figures: CapacityFigures
}

export interface RoundCheckpoint {
  readonly round: number
  readonly marks: readonly (readonly [taskId: string, mark: SwapMark])[]
}

export interface MeterCheckpoint {
  readonly settledAt: Instant
  readonly sharers: readonly TaskNumber[]
  readonly awayCount: number
  readonly servedUs: Microseconds
  readonly swapUs: Microseconds
  readonly computeUs: Microseconds
}

export interface ReservationCheckpoint {
  readonly by: 'head' | 'entry'
  readonly task: TaskNumber
  readonly queueClass: number
  readonly mib: Mib
  readonly isExclusive: boolean
  /** Key of the pool whose head made the reservation; the restored objects share one instance. */
  readonly pool: string | null
}

export interface PoolCheckpoint {
  readonly key: string
  readonly version: number
  readonly membershipVersion: number
  readonly shortfallVersion: number
  /** The shortfall indexes, each as last updated, with the changes not yet applied. */
  readonly shortfallIndexes: readonly ShortfallIndexCheckpoint[]
  readonly reservation: {
    readonly task: TaskNumber
    readonly reservation: ReservationCheckpoint
    readonly gpus: readonly GpuNumber[]
    readonly missingMib: Mib
    readonly nearVersion: number
  } | null
}

export interface ShortfallIndexCheckpoint {
  readonly kind: RequestKind
  readonly gpuCount: number
  readonly nodes: readonly (readonly [node: NodeNumber, minusRoomMib: Mib, everMib: Mib])[]
  readonly unseen: readonly NodeNumber[]
}

/** State of the cluster that is private to it. */
export interface IndexStateCheckpoint {
  readonly queueSettledAt: Instant
  readonly isBetter: boolean
  readonly isFeasibilityStale: boolean
  readonly touchedNodes: readonly NodeNumber[]
  readonly staleGpus: readonly GpuNumber[]
}

/** The state of the store compared with what the nodes have heard of. */
export interface StoreStatusCheckpoint {
  readonly history: ReturnType<EpochHistory['capture']>
  readonly contacts: readonly (readonly [nodeId: string, ahead: AheadNode | null])[]
  readonly heardOfLoss: readonly string[]
  readonly startWait: { readonly awaited: readonly string[]; readonly timer: TimerId } | null
  readonly recovery: (Omit<Recovery, 'awaited'> & { readonly awaited: readonly string[] }) | null
  readonly wasPaused: boolean
  readonly endedUnconfirmed: readonly (readonly [taskId: string, attempt: number])[]
}

export interface ClusterCheckpoint {
  readonly config: Config
  readonly groups: readonly Group[]
  readonly nodes: readonly NodeCheckpoint[]
  /** The first `openCount` tasks are open; the others have ended and are still referenced. */
  readonly tasks: readonly TaskCheckpoint[]
  readonly openCount: number
  readonly pools: readonly PoolCheckpoint[]
  /** The shape and owner of each queue, in order, as the fields of one of its tasks. */
  readonly queues: readonly Pick<
    TaskSpec,
    'gpuMode' | 'noswap' | 'gpuCount' | 'groups' | 'priority' | 'owner'
  >[]
  readonly avoiders: readonly TaskNumber[]
  readonly refusedTasks: readonly TaskNumber[]
  /** In heap order; a placement that has ended has no task. */
  readonly eligibilityTimers: readonly (readonly [
    at: Instant,
    task: TaskNumber | null,
    submissionNumber: number,
  ])[]
  readonly leases: readonly (readonly [task: TaskNumber, renewedAt: Instant])[]
  readonly submissionKeys: readonly SubmissionKeyRecord[]
  readonly probes: readonly (readonly [task: TaskNumber, timer: TimerId])[]
  readonly eagerChecks: {
    readonly nodes: readonly NodeNumber[]
    readonly keptFor: readonly (readonly [TaskNumber, readonly NodeNumber[]])[]
  }
  readonly startTimers: readonly (readonly [task: TaskNumber, timer: TimerId])[]
  readonly runtimeLimits: readonly (readonly [task: TaskNumber, timer: TimerId])[]
  readonly finished: Readonly<Record<FinalState, number>>
  readonly activity: ActivityRuns
  readonly swapTotals: SwapTotals
  readonly changes: number
  readonly queueChanges: number
  readonly queueChangesSeen: number
  readonly lastReservationPass: { readonly changes: number; readonly nextAt: Instant | null }
  readonly broker: BrokerAbsence
  readonly freeze: Omit<RequeueFreeze, 'released'> & { readonly released: readonly string[] }
  readonly storeStatus: StoreStatusCheckpoint
  readonly nextTaskSeq: number
  readonly nextNodeOrdinal: number
  readonly queueUs: Microseconds
  readonly indexState: IndexStateCheckpoint
}
