/** Commands of clients and operators: each is applied at once and answered when its effects are durable. */
import type { DurationMs, Instant } from '../../../../protocol/units.ts'
import type { Config, ConfigFields } from '../../../model/config.ts'
import type { Group } from '../../../model/group.ts'
import type { Node, Task } from '../../../model/placement.ts'
import type { RandomStream } from '../../../ports/random.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { deleteGroup, forgetNode, putConfig, putGroup, putNodeConfig } from './cluster-commands.ts'
import { adoptAttempt, finishRecovery, stopAttempt } from './attempt-commands.ts'
import type {
  Adoption,
  Answer,
  AnswerTo,
  AttemptName,
  Commands,
  KeptLease,
  NodeConfigChange,
  SubmittedOnce,
  TaskChange,
  SubmissionKey,
} from '../../../model/command.ts'
import type { TaskRequest } from '../../../../protocol/task.ts'
import { drainNode, setCordon } from './drain.ts'
import { holdTask, releaseTask } from './holding.ts'
import type { CommitFailed } from '../../../state/transaction.ts'
import { keepalive } from './leases.ts'
import type { RequeueFreeze } from '../../../model/controller-status.ts'
import { releaseFreeze } from '../nodes/requeue-freeze.ts'
import { swapInTask, swapOutTask } from './swap-commands.ts'
import { cancelTask, requeueTask, submitOnce, submitTask, updateTask } from './task-commands.ts'

/** The part of the engine's transaction that commands need. */
export interface CommandTransaction {
  now(): Instant
  /** Calls one of them when all changes so far are durable or have failed. */
  whenDurable(done: () => void, failed: CommitFailed): void
  /** Why nothing is acknowledged anymore; null while the store works (R10). */
  fault(): string | null
}

export class EngineCommands implements Commands {
  readonly #cluster: Cluster
  readonly #taskIds: RandomStream
  readonly #transaction: CommandTransaction

  constructor(cluster: Cluster, taskIds: RandomStream, turn: CommandTransaction) {
    this.#cluster = cluster
    this.#taskIds = taskIds
    this.#transaction = turn
  }

  submitTask(request: TaskRequest, answer: AnswerTo<Task>): void {
    this.#command(request.owner, (now) => submitTask(this.#cluster, request, this.#taskIds, now), answer)
  }

  submitOnce(request: TaskRequest, key: SubmissionKey, answer: AnswerTo<SubmittedOnce>): void {
    this.#command(request.owner, (now) => submitOnce(this.#cluster, request, key, this.#taskIds, now), answer)
  }

  updateTask(id: string, change: TaskChange, by: string | null, answer: AnswerTo<Task>): void {
    this.#command(by, (now) => updateTask(this.#cluster, id, change, now), answer)
  }

  cancelTask(id: string, by: string, answer: AnswerTo<Task>): void {
    this.#command(by, (now) => cancelTask(this.#cluster, id, by, now), answer)
  }

  cancelTaskNow(id: string, by: string, answer: AnswerTo<Task>): void {
    this.#command(by, (now) => cancelTask(this.#cluster, id, by, now, true), answer)
  }

  requeueTask(id: string, confirmFenced: boolean, by: string, answer: AnswerTo<Task>): void {
    this.#command(by, (now) => requeueTask(this.#cluster, id, confirmFenced, by, now), answer)
  }

  holdTask(id: string, by: string, answer: AnswerTo<Task>): void {
    this.#command(by, (now) => holdTask(this.#cluster, id, now), answer)
  }

  releaseTask(id: string, by: string, answer: AnswerTo<Task>): void {
    this.#command(by, (now) => releaseTask(this.#cluster, id, now), answer)
  }

  swapOutTask(id: string, by: string, answer: AnswerTo<Task>): void {
    this.#command(by, (now) => swapOutTask(this.#cluster, id, now), answer)
  }

  swapInTask(id: string, by: string, answer: AnswerTo<Task>): void {
    this.#command(by, (now) => swapInTask(this.#cluster, id, now), answer)
  }

  keepalive(taskId: string, busy: boolean | null, answer: AnswerTo<KeptLease>): void {
    this.#answer(keepalive(this.#cluster, taskId, busy, this.#transaction.now()), answer)
  }

  putConfig(change: Partial<ConfigFields>, author: string | null, answer: AnswerTo<Config>): void {
    this.#command(author, (now) => putConfig(this.#cluster, change, author, now), answer)
  }

  putNodeConfig(nodeId: string, change: NodeConfigChange, by: string | null, answer: AnswerTo<Node>): void {
    this.#command(by, (now) => putNodeConfig(this.#cluster, nodeId, change, now), answer)
  }

  setCordon(nodeId: string, isCordoned: boolean, by: string | null, answer: AnswerTo<Node>): void {
    this.#command(by, (now) => setCordon(this.#cluster, nodeId, isCordoned, now), answer)
  }

  drainNode(nodeId: string, moveAfterMs: DurationMs | null, by: string, answer: AnswerTo<Node>): void {
    this.#command(by, (now) => drainNode(this.#cluster, nodeId, moveAfterMs, by, now), answer)
  }

  forgetNode(nodeId: string, by: string, answer: AnswerTo<null>): void {
    this.#command(by, (now) => forgetNode(this.#cluster, nodeId, by, now), answer)
  }

  finishRecovery(by: string, answer: AnswerTo<null>): void {
    this.#command(by, (now) => finishRecovery(this.#cluster, by, now), answer)
  }

  adoptAttempt(adoption: Adoption, by: string, answer: AnswerTo<Task>): void {
    this.#command(by, (now) => adoptAttempt(this.#cluster, adoption, by, this.#taskIds, now), answer)
  }

  stopAttempt(attempt: AttemptName, by: string, answer: AnswerTo<null>): void {
    this.#command(by, (now) => stopAttempt(this.#cluster, attempt, by, now), answer)
  }

  releaseRequeueFreeze(by: string, answer: AnswerTo<RequeueFreeze>): void {
    this.#command(by, (now) => ({ ok: true, value: releaseFreeze(this.#cluster, by, now) }), answer)
  }

  putGroup(group: Group, ifAbsent: boolean, by: string | null, answer: AnswerTo<Group>): void {
    this.#command(by, (now) => putGroup(this.#cluster, group, ifAbsent, now), answer)
  }

  deleteGroup(id: string, force: boolean, by: string | null, answer: AnswerTo<null>): void {
    this.#command(by, (now) => deleteGroup(this.#cluster, id, force, now), answer)
  }

  /** Events recorded during the command carry the name of the caller. */
  #command<T>(by: string | null, act: (now: Instant) => Answer<T>, answer: AnswerTo<T>): void {
    const { eventLog } = this.#cluster
    eventLog.by = by
    let result: Answer<T>
    try {
      result = act(this.#transaction.now())
    } finally {
      eventLog.by = null
    }
    this.#answer(result, answer)
  }

  #answer<T>(result: Answer<T>, answer: AnswerTo<T>): void {
    const fault = this.#transaction.fault()
    if (fault !== null) refuseAs(answer, fault, 'store_failed')
    else if (result.ok)
      this.#transaction.whenDurable(
        () => answer(result),
        (detail, code) => refuseAs(answer, detail, code),
      )
    else answer(result)
  }
}

function refuseAs<T>(answer: AnswerTo<T>, ...[detail, code]: Parameters<CommitFailed>): void {
  answer({ ok: false, refusal: { code, detail } })
}
