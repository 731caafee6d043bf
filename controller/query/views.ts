/**
 * Read access to the live cluster without a copy: the objects are read-only and change after the call
 * returns.
 */
import type { DurationMs, Instant, Mib, Microseconds } from '../../protocol/units.ts'
import type { Config, ConfigFields } from '../model/config.ts'
import type { Group } from '../model/group.ts'
import type { Gpu, Node, Task } from '../model/placement.ts'
import type { Counters } from '../metrics/counters.ts'
import type { WaitExplanation } from './explain/explain.ts'
import type { StoreReads } from '../ports/store.ts'
import type { ActivityRuns, ClusterSnapshot } from '../ports/twin.ts'
import type { Alarm } from './alarms.ts'
import type { OwnMark } from '../state/epoch-history.ts'
import type { AheadNode, PauseReason, Recovery } from '../model/controller-status.ts'
import type { Answer, NodeConfigChange } from '../model/command.ts'
import type { TaskRequest } from '../../protocol/task.ts'
import type { GroupPreview } from './preview/group-preview.ts'
import type { FullExplanation } from './preview/explain-fully.ts'
import type { Over, Planned } from './preview/impact.ts'
import type { Prediction } from './preview/prediction.ts'

export interface TaskCounts {
  readonly pending: number
  readonly assigned: number
  readonly running: number
  readonly unreachable: number
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
  readonly lost: number
}

export interface ClusterTotals {
  readonly nodes: number
  readonly nodesUp: number
  readonly gpus: number
  /** GPUs on nodes that are up. */
  readonly gpusUp: number
  readonly physicalMib: Mib
  readonly effectiveSchedulableMib: Mib
  readonly commitLimitMib: Mib
  readonly residentMib: Mib
  readonly committedMib: Mib
  readonly swappedMib: Mib
  readonly foreignMib: Mib
  /** Completed swap-outs and swap-ins since the controller started, and the MiB they moved. */
  readonly swapOuts: number
  readonly swapIns: number
  readonly swappedOutMibTotal: Mib
  readonly swappedInMibTotal: Mib
}

/** Completed swaps since the controller started, and the MiB they moved. */
export interface SwapCounts {
  readonly swapOuts: number
  readonly swapIns: number
  readonly swappedOutMib: Mib
  readonly swappedInMib: Mib
}

/** Tasks that wait for their start and count as demand (semantics 6), and that demand so far. */
export interface WaitCounts {
  readonly tasks: number
  readonly queueUs: Microseconds
}

export interface RecoveryView {
  readonly pause: PauseReason | null
  /** Null: no recovery is in progress. */
  readonly recovery: Recovery | null
  /** Nodes that were up before the start and have not been heard. */
  readonly awaitedSinceStart: readonly string[]
  readonly ownMark: OwnMark
  readonly aheadNodes: readonly (readonly [nodeId: string, ahead: AheadNode])[]
  readonly contacts: number
  /** Tasks that their node does not know: they end when placements continue. */
  readonly resultUnknown: readonly Task[]
}

export interface Views {
  now(): Instant
  config(): Config
  nodes(): Iterable<Node>
  node(id: string): Node | undefined
  /**
   * When the node was last heard. A simulated node that is up counts as heard now where its heartbeats are
   * elided.
   */
  lastHeardAt(node: Node): Instant
  groups(): Iterable<Group>
  group(id: string): Group | undefined
  /** Pending and placed tasks, in submission order. */
  openTasks(): Iterable<Task>
  /** Tasks with a smaller number, newest submission first. */
  openTasksBefore(seq: number): Iterable<Task>
  /** Open tasks that are not pending, in no order. */
  placedTasks(): Iterable<Task>
  openTask(id: string): Task | undefined
  counts(): TaskCounts
  /** Number of tasks being stopped. */
  stoppingCount(): number
  totals(): ClusterTotals
  /**
   * Jain's index of the swap-outs decided since the controller started; null before the first (semantics 7).
   */
  swapJain(): number | null
  /** Number of the newest event; 0 before the first. It may not be durable yet. */
  lastEventSeq(): number
  /** Current alarms, most severe first. */
  alarms(): readonly Alarm[]
  /** The state of the store compared with what the nodes have heard of. */
  recovery(): RecoveryView
  /** Explains why a pending task waits, or a swapped-out one that wants the GPU; null if it does not wait. */
  explain(task: Task): WaitExplanation | null
  /** The full explanation, with every node's verdict and what would place the task. Scans its pool. */
  explainFully(task: Task): FullExplanation
  /** Previews a change of the configuration without applying it. Refused as the change itself would be. */
  planConfig(change: Partial<ConfigFields>): Answer<Planned<Config>>
  planNodeConfig(nodeId: string, change: NodeConfigChange): Answer<Planned<Node>>
  /**
   * Predicts where a task would be placed if submitted now, without submitting it. Refused as the submission
   * would be.
   */
  predict(request: TaskRequest): Answer<Prediction>
  /** Previews a change of the group's members; null: its deletion. */
  previewGroup(id: string, nodeIds: readonly string[] | null): GroupPreview
  /** Committed or resident VRAM beyond the limits, over all GPUs. Scans them. */
  over(): Over
  /**
   * The cluster's five counters and busy time up to now; a window is the difference of two calls (semantics
   * 6).
   */
  clusterCounters(): Counters
  nodeCounters(node: Node): Counters
  gpuCounters(gpu: Gpu): Counters
  /** Waits of the cluster, or of tasks that target the group; a task counts in every group it names. */
  waits(groupId?: string): WaitCounts
  /** As in `counts`, without scanning the tasks. */
  pendingCount(): number
  nodeSwaps(node: Node): SwapCounts
  gpuSwaps(gpu: Gpu): SwapCounts
  /** Duration of all copies of its tasks that have ended, out and in, since the controller started. */
  gpuCopyMs(gpu: Gpu): DurationMs
  taskCounters(task: Task): Counters
  /** Recent periods in which tasks did or did not want the GPU. */
  activityRuns(): ActivityRuns
  /**
   * Copies all open state, for a simulation to continue from. Scans all of it.
   * @param tried a task that the copy contains as TRIED_TASK_ID, as if it were submitted now
   */
  snapshot(tried?: TaskRequest): ClusterSnapshot
  readonly stored: StoreReads
}
