/**
 * What the controller can be asked to do from outside, and what it answers. The REST routes, the simulator's
 * clients and (later) the wire's client subjects all come through here. An answer is given only when what it
 * says is durable (R1).
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
} from '../../../protocol/units.ts'
import type { Config, ConfigFields, FieldProblem } from '../../domain/config.ts'
import type { Group } from '../../domain/group.ts'
import type { Node } from '../../domain/node.ts'
import type { Task } from '../../domain/task.ts'
import type { RequeueFreeze } from '../node/requeue-freeze.ts'
import type { SubmissionKey } from './submission-keys.ts'

/** Why a command was not carried out. Nothing has changed then. */
export type Refusal =
  | { readonly code: 'invalid'; readonly problems: readonly FieldProblem[] }
  | {
      readonly code: 'not_found'
      readonly what: 'node' | 'task' | 'group' | 'token' | 'attempt'
      readonly id: string
    }
  | { readonly code: 'conflict'; readonly detail: string }
  /** Of all tasks, or of those of one owner. */
  | { readonly code: 'too_many_pending'; readonly limit: number; readonly owner: string | null }
  /** The idempotency key came with another body before. */
  | { readonly code: 'key_reused'; readonly taskId: string }
  | { readonly code: 'store_failed'; readonly detail: string }

export type Answer<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: Refusal }
export type AnswerTo<T> = (answer: Answer<T>) => void

/**
 * A submission, checked field by field already (api/schema or the scenario loader); the engine checks what
 * spans fields.
 */
export interface TaskRequest {
  /** Given by scenarios and idempotent clients; null lets the controller draw a UUID. */
  readonly id: string | null
  readonly name: string | null
  /** Per GPU; may be null for an exclusive task only. */
  readonly vramMib: Mib | null
  readonly gpuCount: number
  readonly gpuMode: GpuMode
  readonly noswap: NoSwap
  readonly priority: Priority
  readonly groups: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly owner: string | null
  readonly command: readonly string[] | null
  readonly maxRuntimeSeconds: number | null
  /** Null or left out: what the cluster gives. */
  readonly stopGraceSeconds?: number | null
  readonly onNodeLoss: OnNodeLoss
  /** Null: no limit; left out: what the configuration says at the submission. */
  readonly maxRequeues?: number | null
}

export const TASK_DEFAULTS = {
  gpuCount: 1,
  gpuMode: 'shared',
  noswap: 0,
  priority: 2,
  onNodeLoss: 'wait',
} as const

/** `undefined` leaves a field as it is; null takes an override away. */
export interface NodeConfigChange {
  readonly overcommitPercent?: Percent | null
  readonly reserveMib?: Mib | null
}

/** The merge patch of a task: `vramMib`, `groups` and `onNodeLoss` only while it is pending. */
export interface TaskChange {
  readonly noswap?: NoSwap
  readonly priority?: Priority
  readonly labels?: Readonly<Record<string, string>>
  readonly vramMib?: Mib
  readonly groups?: readonly string[]
  readonly onNodeLoss?: OnNodeLoss
  /** null: of the cluster. Holds from the next stop on. */
  readonly stopGraceSeconds?: number | null
}

export interface KeptLease {
  readonly task: Task
  /** It ends then unless it is kept alive again; null: leases do not end here (simulated fleets). */
  readonly expiresAt: Instant | null
}

export interface SubmittedOnce {
  readonly taskId: string
  /** The key was known: this is the task that the first submission made, which may have ended by now. */
  readonly isReplay: boolean
}

export interface AttemptName {
  readonly taskId: string
  readonly attempt: number
  readonly nodeId: string
}

export interface Adoption extends AttemptName {
  readonly name: string
  readonly owner: string | null
  /** Null: a lease. */
  readonly command: readonly string[] | null
  readonly gpuMode: GpuMode
  readonly noswap: NoSwap
  readonly priority: Priority
  readonly onNodeLoss: OnNodeLoss
}

/** `by` is who asks, by name: events and reasons say it. */
export interface Commands {
  submitTask(request: TaskRequest, answer: AnswerTo<Task>): void
  /** The same key and body again: the same task. The same key and another body: `key_reused`. */
  submitOnce(request: TaskRequest, key: SubmissionKey, answer: AnswerTo<SubmittedOnce>): void
  updateTask(id: string, change: TaskChange, by: string | null, answer: AnswerTo<Task>): void
  /**
   * Pending: cancelled at once. Placed: the node is told to stop it; the answer comes when the wish is
   * durable.
   */
  cancelTask(id: string, by: string, answer: AnswerTo<Task>): void
  /** The same without a grace, also for a task that is being stopped with one. */
  cancelTaskNow(id: string, by: string, answer: AnswerTo<Task>): void
  /**
   * Takes the attempt back and makes the task pending again, once its server has ended it; the answer comes
   * when the wish is durable. An unreachable server cannot say so: `confirmFenced` says that the operator has
   * seen to it that nothing of the attempt runs (R5).
   */
  requeueTask(id: string, confirmFenced: boolean, by: string, answer: AnswerTo<Task>): void
  /**
   * A pending task is not placed before it is released. Refused with `conflict` for a placed one; harmless
   * when it is so already.
   */
  holdTask(id: string, by: string, answer: AnswerTo<Task>): void
  releaseTask(id: string, by: string, answer: AnswerTo<Task>): void
  /**
   * The answer comes when the order is durable; the node may still refuse it (R12). `conflict` says what is
   * known to be in the way.
   */
  swapOutTask(id: string, by: string, answer: AnswerTo<Task>): void
  /** The wish that a swapped-out task returns. */
  swapInTask(id: string, by: string, answer: AnswerTo<Task>): void
  /**
   * A lease (a task without a command) goes on, and wants the GPU or not. Refused with `conflict` for a task
   * with a command.
   */
  keepalive(taskId: string, busy: boolean, answer: AnswerTo<KeptLease>): void
  putConfig(change: Partial<ConfigFields>, author: string | null, answer: AnswerTo<Config>): void
  putNodeConfig(nodeId: string, change: NodeConfigChange, by: string | null, answer: AnswerTo<Node>): void
  /** Creates or replaces. `ifAbsent` refuses with `conflict` when the group exists. */
  putGroup(group: Group, ifAbsent: boolean, by: string | null, answer: AnswerTo<Group>): void
  deleteGroup(id: string, force: boolean, by: string | null, answer: AnswerTo<null>): void
  setCordon(nodeId: string, isCordoned: boolean, by: string | null, answer: AnswerTo<Node>): void
  /**
   * Cordons it until it is uncordoned; after `moveAfterMs` (null: never) tasks that may be requeued are
   * stopped and wait for another node.
   */
  drainNode(nodeId: string, moveAfterMs: DurationMs | null, by: string, answer: AnswerTo<Node>): void
  /** A node that is gone for good, with nothing placed on it; else `conflict`. It may register again. */
  forgetNode(nodeId: string, by: string, answer: AnswerTo<null>): void
  /** Ends the recovery although nodes have not been heard. Without a recovery it does nothing. */
  finishRecovery(by: string, answer: AnswerTo<null>): void
  /**
   * An attempt in quarantine becomes a task. The owner is the one that the administrator names, not the one
   * that the node tells.
   */
  adoptAttempt(adoption: Adoption, by: string, answer: AnswerTo<Task>): void
  /** The node is told to end an attempt in quarantine; the answer comes when the wish is durable. */
  stopAttempt(attempt: AttemptName, by: string, answer: AnswerTo<null>): void
  /**
   * The nodes that are silent now count as dead: requeues go on (protocol, "mass silence"). Harmless when
   * nothing is frozen.
   */
  releaseRequeueFreeze(by: string, answer: AnswerTo<RequeueFreeze>): void
}
