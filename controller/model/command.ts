/**
 * Commands that the controller accepts and their answers. REST routes, clients on the bus and simulated
 * clients all use them. An answer is given only once what it says is durable (R1).
 */
import type {
  DurationMs,
  GpuMode,
  Instant,
  Mib,
  NoSwap,
  OnNodeLoss,
  Percent,
  Priority,
} from '../../protocol/units.ts'
import type { Config, ConfigFields, FieldProblem } from './config.ts'
import type { RequeueFreeze } from './controller-status.ts'
import type { Group } from './group.ts'
import type { Node } from './placement.ts'
import type { Task } from './placement.ts'
import type { ResourceLimits } from '../../protocol/resource-limits.ts'
import type { TaskRequest, TaskSurroundings } from '../../protocol/task.ts'

/** Why a command was refused. A refused command changes nothing. */
export type Refusal =
  | { readonly code: 'invalid'; readonly problems: readonly FieldProblem[] }
  | {
      readonly code: 'not_found'
      readonly what: 'node' | 'task' | 'group' | 'token' | 'attempt' | 'secret'
      readonly id: string
    }
  | { readonly code: 'conflict'; readonly detail: string }
  /** The limit of all tasks, or of those of one owner. */
  | { readonly code: 'too_many_pending'; readonly limit: number; readonly owner: string | null }
  /** The idempotency key was used with another body before. */
  | { readonly code: 'key_reused'; readonly taskId: string }
  /** Nothing of it was written. */
  | { readonly code: 'store_failed'; readonly detail: string }
  /** It may have been written: the commit ended with an error. */
  | { readonly code: 'commit_unknown'; readonly detail: string }

export type Answer<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: Refusal }
export type AnswerTo<T> = (answer: Answer<T>) => void

/** `undefined` leaves a field unchanged; null removes an override. */
export interface NodeConfigChange {
  readonly overcommitPercent?: Percent | null
  readonly reserveMib?: Mib | null
}

/** A merge patch of a task. `vramMib`, `groups` and `onNodeLoss` can change only while it is pending. */
export interface TaskChange {
  readonly noswap?: NoSwap
  readonly priority?: Priority
  readonly labels?: Readonly<Record<string, string>>
  readonly vramMib?: Mib
  readonly groups?: readonly string[]
  readonly onNodeLoss?: OnNodeLoss
  /** Null: the default of the cluster. Applies from the next stop on. */
  readonly stopGraceSeconds?: number | null
}

export interface KeptLease {
  readonly task: Task
  /** When the lease ends unless it is renewed; null: leases do not end here (simulated fleets). */
  readonly expiresAt: Instant | null
}

export interface SubmittedOnce {
  readonly taskId: string
  /** The key was known: this is the task of the first submission, which may have ended. */
  readonly isReplay: boolean
}

/** The key of one caller, and the body it was sent with. */
export interface SubmissionKey {
  readonly key: string
  readonly body: string
}

export interface AttemptName {
  readonly taskId: string
  readonly attempt: number
  readonly nodeId: string
}

export interface Adoption extends AttemptName, TaskSurroundings {
  readonly name: string
  readonly owner: string | null
  /** Null: a lease. */
  readonly command: readonly string[] | null
  readonly limits: ResourceLimits | null
  readonly gpuMode: GpuMode
  readonly noswap: NoSwap
  readonly priority: Priority
  readonly onNodeLoss: OnNodeLoss
}

/** `by` is the name of the caller, for events and reasons. */
export interface Commands {
  submitTask(request: TaskRequest, answer: AnswerTo<Task>): void
  /** The same key with the same body returns the same task; with another body the answer is `key_reused`. */
  submitOnce(request: TaskRequest, key: SubmissionKey, answer: AnswerTo<SubmittedOnce>): void
  updateTask(id: string, change: TaskChange, by: string | null, answer: AnswerTo<Task>): void
  /**
   * A pending task is cancelled at once. For a placed task the node is told to stop it; the answer is given
   * when that intent is durable.
   */
  cancelTask(id: string, by: string, answer: AnswerTo<Task>): void
  /** As `cancelTask` without a grace period, also for a task that is already stopping with one. */
  cancelTaskNow(id: string, by: string, answer: AnswerTo<Task>): void
  /**
   * Takes the attempt back and makes the task pending again once its server has ended it; the answer is given
   * when that intent is durable. An unreachable server cannot confirm the end: with `confirmFenced` the
   * operator asserts that nothing of the attempt runs (R5).
   */
  requeueTask(id: string, confirmFenced: boolean, by: string, answer: AnswerTo<Task>): void
  /**
   * Puts a pending task on hold until it is released. A placed task is refused with `conflict`. Idempotent.
   */
  holdTask(id: string, by: string, answer: AnswerTo<Task>): void
  releaseTask(id: string, by: string, answer: AnswerTo<Task>): void
  /**
   * Answered when the order is durable; the node may still refuse it (R12). Known obstacles are refused with
   * `conflict`.
   */
  swapOutTask(id: string, by: string, answer: AnswerTo<Task>): void
  /** Requests the return of a swapped-out task. */
  swapInTask(id: string, by: string, answer: AnswerTo<Task>): void
  /**
   * Renews a lease (a task without a command) and says whether it wants the GPU. A task with a command is
   * refused with `conflict`.
   */
  keepalive(taskId: string, busy: boolean | null, answer: AnswerTo<KeptLease>): void
  putConfig(change: Partial<ConfigFields>, author: string | null, answer: AnswerTo<Config>): void
  putNodeConfig(nodeId: string, change: NodeConfigChange, by: string | null, answer: AnswerTo<Node>): void
  /** Creates or replaces a group. With `ifAbsent` an existing group is refused with `conflict`. */
  putGroup(group: Group, ifAbsent: boolean, by: string | null, answer: AnswerTo<Group>): void
  deleteGroup(id: string, force: boolean, by: string | null, answer: AnswerTo<null>): void
  setCordon(nodeId: string, isCordoned: boolean, by: string | null, answer: AnswerTo<Node>): void
  /**
   * Cordons the node until it is uncordoned. After `moveAfterMs` (null: never) tasks that may be requeued are
   * stopped and wait for another node.
   */
  drainNode(nodeId: string, moveAfterMs: DurationMs | null, by: string, answer: AnswerTo<Node>): void
  /**
   * Removes a node that is gone for good. Refused with `conflict` while anything is placed on it. It may
   * register again.
   */
  forgetNode(nodeId: string, by: string, answer: AnswerTo<null>): void
  /** Ends the recovery although some nodes have not been heard. Does nothing without a recovery. */
  finishRecovery(by: string, answer: AnswerTo<null>): void
  /**
   * Turns an attempt in quarantine into a task. Its owner is named by the administrator; the node's report
   * does not count.
   */
  adoptAttempt(adoption: Adoption, by: string, answer: AnswerTo<Task>): void
  /** Orders the node to end an attempt in quarantine; answered when the intent is durable. */
  stopAttempt(attempt: AttemptName, by: string, answer: AnswerTo<null>): void
  /**
   * Treats all silent nodes as dead: requeues continue (protocol, "mass silence"). Does nothing without a
   * freeze.
   */
  releaseRequeueFreeze(by: string, answer: AnswerTo<RequeueFreeze>): void
}
