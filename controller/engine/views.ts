/**
 * What can be read of the live cluster, without a copy: the objects are read-only and change after the call
 * returns.
 */
import type { Instant, Mib, Microseconds } from '../../protocol/units.ts'
import type { Config, ConfigFields } from '../domain/config.ts'
import type { Group } from '../domain/group.ts'
import type { Gpu, Node } from '../domain/node.ts'
import type { Task } from '../domain/task.ts'
import type { Counters } from '../metrics/counters.ts'
import type { WaitExplanation } from '../scheduler/explain.ts'
import type { StoreReads } from '../ports/store.ts'
import type { ActivityRuns, ClusterSnapshot } from '../ports/twin.ts'
import type { Alarm } from './alarms.ts'
import type { OwnMark } from './epoch-history.ts'
import type { AheadNode } from './node/contacts.ts'
import type { PauseReason, Recovery } from './node/placement-pause.ts'
import type { Answer, NodeConfigChange, TaskRequest } from './commands/commands.ts'
import type { GroupPreview } from './what-if/group-preview.ts'
import type { FullExplanation } from './explain/explain-fully.ts'
import type { Over, Planned } from './what-if/impact.ts'
import type { Prediction } from './what-if/prediction.ts'

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
  /** Swap-outs and swap-ins completed since the controller started, and the bytes they moved. */
  readonly swapOuts: number
  readonly swapIns: number
  readonly swappedOutMibTotal: Mib
  readonly swappedInMibTotal: Mib
}

/** Swaps that have ended since the controller started, and the bytes they moved. */
export interface SwapCounts {
  readonly swapOuts: number
  readonly swapIns: number
  readonly swappedOutMib: Mib
  readonly swappedInMib: Mib
}

/** Tasks that wait for their start and whose wait counts as demand (semantics 6), and that demand so far. */
export interface WaitCounts {
  readonly tasks: number
  readonly queueUs: Microseconds
}

export interface RecoveryView {
  readonly pause: PauseReason | null
  /** null: no recovery is on. */
  readonly recovery: Recovery | null
  /** Nodes that were up before the start, and have not spoken. */
  readonly awaitedSinceStart: readonly string[]
  readonly ownMark: OwnMark
  readonly aheadNodes: readonly (readonly [nodeId: string, ahead: AheadNode])[]
  readonly contacts: number
  /** Tasks that their node does not know: they end when placements go on. */
  readonly resultUnknown: readonly Task[]
}

export interface Views {
  now(): Instant
  config(): Config
  nodes(): Iterable<Node>
  node(id: string): Node | undefined
  /**
   * When the node was heard last. A simulated node that is up is heard now where its heartbeats are not sent
   * one by one.
   */
  lastHeardAt(node: Node): Instant
  groups(): Iterable<Group>
  group(id: string): Group | undefined
  /** Pending and placed tasks, in submission order. */
  openTasks(): Iterable<Task>
  /** The same, newest submission first, of those with a smaller number than this. */
  openTasksBefore(seq: number): Iterable<Task>
  /** Open tasks that are not pending, in no order. */
  placedTasks(): Iterable<Task>
  openTask(id: string): Task | undefined
  counts(): TaskCounts
  /** How many tasks are being stopped now. */
  stoppingCount(): number
  totals(): ClusterTotals
  /**
   * Jain's index of the swap-outs decided since the controller started; null before the first (semantics 7).
   */
  swapJain(): number | null
  /** Of the newest event; 0 before the first. It may not be durable yet. */
  lastEventSeq(): number
  /** What an operator should know of now, the gravest first. */
  alarms(): readonly Alarm[]
  /** How the store compares with what the nodes have heard of. */
  recovery(): RecoveryView
  /** Why a pending task waits, or a swapped-out one that wants the GPU; null when it does not wait. */
  explain(task: Task): WaitExplanation | null
  /** The same in full, with every node's verdict and what would place it: a pass over its pool. */
  explainFully(task: Task): FullExplanation
  /**
   * What a change of the configuration would do; nothing is changed by asking. Refused as the change itself
   * would be.
   */
  planConfig(change: Partial<ConfigFields>): Answer<Planned<Config>>
  planNodeConfig(nodeId: string, change: NodeConfigChange): Answer<Planned<Node>>
  /**
   * Where a task would go if it were submitted now. Nothing is kept of the question. Refused as the
   * submission would be.
   */
  predict(request: TaskRequest): Answer<Prediction>
  /** What a change of the group's members would do; null: that it is deleted. */
  previewGroup(id: string, nodeIds: readonly string[] | null): GroupPreview
  /** What is promised, or resident, beyond what is allowed, over all GPUs: a pass over them. */
  over(): Over
  /**
   * The cluster's five counters and busy time up to now; a window is the difference of two calls (semantics
   * 6).
   */
  clusterCounters(): Counters
  nodeCounters(node: Node): Counters
  gpuCounters(gpu: Gpu): Counters
  /** Of the cluster; of a group: of tasks that target it, each counted in every group it names. */
  waits(groupId?: string): WaitCounts
  /** As in `counts`, without a look at every task. */
  pendingCount(): number
  nodeSwaps(node: Node): SwapCounts
  gpuSwaps(gpu: Gpu): SwapCounts
  taskCounters(task: Task): Counters
  /** How long tasks wanted the GPU at a stretch lately, or did not. */
  activityRuns(): ActivityRuns
  /** A copy of everything that is open, for a simulation to go on from: a pass over all of it. */
  snapshot(): ClusterSnapshot
  readonly stored: StoreReads
}
