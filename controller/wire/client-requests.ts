/**
 * Requests of clients over the bus become calls of the engine, like the routes of REST. The subject
 * identifies the client, which the broker guarantees; a client sees and cancels only the tasks it submitted.
 */
import type { ClientBody, SubmitTask, TaskAnswer } from '../../protocol/client-messages.ts'
import { MAX_ANSWER_REASON_LENGTH } from '../../protocol/limits.ts'
import type { ControllerBody, Envelope } from '../../protocol/envelope.ts'
import { clientIdOf, everyClient } from '../../protocol/subjects.ts'
import { uuidV5 } from '../../protocol/uuid.ts'
import { faultInVramLimit, LIMIT_FIELDS } from '../../protocol/resource-limits.ts'
import { GROUP_ID_PATTERN } from '../model/group.ts'
import { busOwner } from '../model/bus-owner.ts'
import { mayUseP0, type OwnerLimits } from '../model/owner-limits.ts'
import { endSentenceOf } from '../model/end-reason.ts'
import { isFinal } from '../model/task.ts'
import type { TaskSpec, TaskRequest } from '../../protocol/task.ts'
import type { Task } from '../model/placement.ts'
import type { Answer, Commands, Refusal } from '../model/command.ts'
import type { Views } from '../query/views.ts'
import type { Bus, Reply } from '../ports/bus.ts'
import type { TaskRecord } from '../ports/store.ts'
import { audited, auditSubjectOf, type ClientAudit } from './client-audit.ts'
import type { RefusedReason } from './message-counts.ts'
import { RequestBudget } from './request-budget.ts'
import { faultInSwapMethod, isSameRequest, requestOfBody, sharedPortName } from '../../protocol/task-body.ts'
import { errorText } from '../../protocol/error-text.ts'

export interface ClientRequestsOptions {
  readonly commands: Commands
  readonly views: Views
  readonly bus: Bus
  readonly envelope: (body: ControllerBody) => Envelope
  /** A commit has failed: tasks in memory may not be stored, and this process ends (R10). */
  readonly isFaulty: () => boolean
  readonly ownerLimits: OwnerLimits
  /** Limit for all clients together; 0: no limit. */
  readonly requestsPerSecond: number
  /** Null: no audit. */
  readonly audit: ClientAudit | null
  /** Called for a payload that does not belong on its subject; it was refused. */
  readonly onRefused: (clientId: string | null, reason: RefusedReason) => void
}

/** @returns a function that stops listening */
export function listenToClients(options: ClientRequestsOptions): () => void {
  const requests = new ClientRequests(options)
  const ends = (['submit', 'cancel', 'get', 'keepalive'] as const).map((op) =>
    options.bus.subscribe(everyClient(op), (message, subject, reply) =>
      requests.receive(op, message, subject, reply),
    ),
  )
  return () => ends.forEach((end) => end())
}

type Respond = (body: TaskAnswer | Refusal) => void

class ClientRequests {
  readonly #options: ClientRequestsOptions
  /** Submissions that are not durable yet, by task id: a repeated submission waits with the first. */
  readonly #underWay = new Map<string, Respond[]>()
  readonly #budget: RequestBudget

  constructor(options: ClientRequestsOptions) {
    this.#options = options
    this.#budget = new RequestBudget(options.requestsPerSecond)
  }

  receive(op: ClientBody['op'], { id, body }: Envelope, subject: string, reply: Reply): void {
    if (this.#options.isFaulty()) return
    const clientId = clientIdOf(subject)
    if (clientId === null || body.op !== op) {
      this.#options.onRefused(clientId, 'wrong_subject')
      reply(this.#options.envelope({ op: 'refused', reason: 'wrong_subject' }))
      return
    }
    if (!this.#budget.take(this.#options.views.now())) {
      this.#options.onRefused(clientId, 'too_many_requests')
      reply(this.#options.envelope({ op: 'refused', reason: 'too_many_requests: try again after a second' }))
      return
    }
    const answer: Respond = (told) =>
      reply(this.#options.envelope('op' in told ? told : { op: 'refused', reason: reasonOf(told) }))
    const changes = body.op === 'submit' || body.op === 'cancel'
    const tell = changes
      ? audited(this.#options.audit, auditSubjectOf(body.op, clientId, id, subject), answer)
      : answer
    switch (body.op) {
      case 'submit':
        return this.#submit(clientId, id, body, tell)
      case 'cancel':
        return this.#find(clientId, body.task_id, tell, (task) =>
          this.#cancel(clientId, task, body.now === true, tell),
        )
      case 'get':
        return this.#find(clientId, body.task_id, tell, (task) => tell(this.#answerOf(task)))
      case 'keepalive':
        return this.#find(clientId, body.task_id, tell, (task) => this.#keep(task, body.busy, tell))
    }
  }

  #submit(clientId: string, messageId: string, body: SubmitTask, tell: Respond): void {
    const problem = problemOf(body) ?? this.#p0Problem(clientId, body)
    if (problem !== null) return tell(problem)
    const request = requestOf(body, taskIdOf(clientId, messageId), busOwner(clientId))
    const others = this.#underWay.get(request.id)
    if (others !== undefined) {
      others.push((told) => tell(sameOr(this.#options.views.openTask(request.id)?.spec, request) ?? told))
      return
    }
    const waiting = [tell]
    this.#underWay.set(request.id, waiting)
    const end: Respond = (told) => {
      this.#underWay.delete(request.id)
      waiting.forEach((each) => each(told))
    }
    const known = this.#options.views.openTask(request.id)
    if (known !== undefined) return end(sameOr(known.spec, request) ?? this.#answerOf(known))
    this.#fromStore(request.id, end, (record) => {
      if (record !== null) end(sameOr(record, request) ?? answerOfRecord(record))
      else this.#options.commands.submitTask(request, (answer) => end(this.#responseOf(answer)))
    })
  }

  /** A client of the bus has the role submitter. */
  #p0Problem(clientId: string, { priority }: SubmitTask): Refusal | null {
    if (priority !== 0 || mayUseP0(this.#options.ownerLimits, busOwner(clientId), 'submitter')) return null
    return { code: 'conflict', detail: 'this client may not use P0' }
  }

  #cancel(clientId: string, task: Task, isNow: boolean, tell: Respond): void {
    const { commands } = this.#options
    const order = isNow ? commands.cancelTaskNow : commands.cancelTask
    order.call(commands, task.spec.id, `client ${clientId}`, (answer) => tell(this.#responseOf(answer)))
  }

  #keep(task: Task, busy: boolean, tell: Respond): void {
    this.#options.commands.keepalive(task.spec.id, busy, (answer) => {
      if (!answer.ok) return tell(answer.refusal)
      const { expiresAt } = answer.value
      const expires_in_ms = expiresAt === null ? null : Math.max(0, expiresAt - this.#options.views.now())
      tell({ ...this.#answerOf(answer.value.task), expires_in_ms })
    })
  }

  /**
   * Finds an open task of this client. A task that has ended is answered with its end, so that a repeated
   * `cancel` gets the answer of the first.
   */
  #find(clientId: string, taskId: string, tell: Respond, found: (task: Task) => void): void {
    const notFound: Refusal = { code: 'not_found', what: 'task', id: taskId }
    const open = this.#options.views.openTask(taskId)
    if (open !== undefined) return open.spec.owner === busOwner(clientId) ? found(open) : tell(notFound)
    this.#fromStore(taskId, tell, (record) => {
      if (record === null || record.owner !== busOwner(clientId)) tell(notFound)
      else tell(answerOfRecord(record))
    })
  }

  #fromStore(taskId: string, tell: Respond, found: (record: TaskRecord | null) => void): void {
    this.#options.views.stored.task(taskId).then(found, (fault: unknown) => {
      tell({ code: 'store_failed', detail: errorText(fault) })
    })
  }

  #responseOf(answer: Answer<Task>): TaskAnswer | Refusal {
    return answer.ok ? this.#answerOf(answer.value) : answer.refusal
  }

  #answerOf(task: Task): TaskAnswer {
    const { spec, placement } = task
    return {
      op: 'task',
      task_id: spec.id,
      name: spec.name,
      state: task.state,
      residency: placement?.residency ?? 'none',
      attempt: task.attempt,
      swap_outs: task.swapOuts,
      node_id: placement?.node.id ?? null,
      gpus: placement?.gpus.map((gpu) => gpu.index) ?? [],
      exit_code: task.exitCode,
      reason: cut(
        isFinal(task.state) ? endSentenceOf(task) : (this.#options.views.explain(task)?.sentence ?? null),
      ),
      expires_in_ms: null,
    }
  }
}

function answerOfRecord(record: TaskRecord): TaskAnswer {
  const { id, name, state, attempt, swapOuts, exitCode } = record
  const course = {
    task_id: id,
    name,
    state,
    attempt,
    swap_outs: swapOuts,
    exit_code: exitCode,
    reason: cut(endSentenceOf(record)),
  }
  return { op: 'task', ...course, residency: 'none', node_id: null, gpus: [], expires_in_ms: null }
}

/** Checks rules that span the items of a list; the codec has validated the rest. Same rules as in REST. */
function problemOf(body: SubmitTask): Refusal | null {
  const { groups, labels, command, image = null, cwd = null, workdir = null } = body
  const { ports = [], mounts = [] } = body
  if (command === null && image !== null) return invalid('image', 'requires a command; a lease has none')
  if (command === null && cwd !== null) return invalid('cwd', 'requires a command; a lease has none')
  if (command === null && mounts.length > 0) return invalid('mounts', 'requires a command; a lease has none')
  if (image !== null && cwd !== null)
    return invalid('cwd', 'a task with an image cannot access folders of the host')
  if (workdir !== null) return invalid('workdir', 'clients of the bus cannot upload files; use REST')
  const limit = LIMIT_FIELDS.find((field) => typeof body[field] === 'number')
  if (command === null && limit !== undefined) return invalid(limit, 'requires a command; a lease has none')
  const tooLow = faultInVramLimit(body.vram_mib, body.vram_limit_mib ?? null)
  if (tooLow !== null) return invalid('vram_limit_mib', tooLow)
  if (!groups.every((group) => GROUP_ID.test(group))) return invalid('groups', 'must contain names of groups')
  if (new Set(groups).size < groups.length) return invalid('groups', 'must not contain a group twice')
  if (new Set(labels.map(({ name }) => name)).size < labels.length)
    return invalid('labels', 'must not contain a name twice')
  const fault = faultInSwapMethod(body)
  if (fault !== null) return invalid(...fault)
  if (sharedPortName(ports) !== null) return invalid('ports', 'must not contain a name twice')
  return null
}

const GROUP_ID = new RegExp(GROUP_ID_PATTERN, 'u')

function invalid(field: string, detail: string): Refusal {
  return { code: 'invalid', problems: [{ field, detail }] }
}

function requestOf(body: SubmitTask, id: string, owner: string): TaskRequest & { readonly id: string } {
  const labels = Object.fromEntries(body.labels.map(({ name, value }) => [name, value]))
  return requestOfBody({ ...body, labels }, id, owner)
}

/** Namespace of the ids of tasks that clients submit. */
const TASK_NAMESPACE = 'f694b0c8-a658-4e9f-b34f-015307a66e6e'

/** The same message gives the same task on any controller. */
function taskIdOf(clientId: string, messageId: string): string {
  return uuidV5(TASK_NAMESPACE, `${clientId}\n${messageId}`)
}

function sameOr(spec: TaskSpec | TaskRecord | undefined, request: TaskRequest): Refusal | null {
  return spec === undefined || isSameRequest(spec, request)
    ? null
    : { code: 'conflict', detail: 'this message id was used for another task' }
}

const MAX_REFUSAL_LENGTH = 200

/** The code, then details as far as they fit. */
function reasonOf(refusal: Refusal): string {
  switch (refusal.code) {
    case 'invalid':
      return `invalid: ${refusal.problems.map(({ field, detail }) => `${field} ${detail}`).join('; ')}`.slice(
        0,
        MAX_REFUSAL_LENGTH,
      )
    case 'not_found':
    case 'key_reused':
      return refusal.code
    case 'conflict':
    case 'store_failed':
    case 'commit_unknown':
      return `${refusal.code}: ${oneLine(refusal.detail)}`.slice(0, MAX_REFUSAL_LENGTH)
    case 'too_many_pending':
      return `too_many_pending: at most ${refusal.limit}`
  }
}

function oneLine(text: string): string {
  return text.replaceAll(/[\u0000-\u001f\u007f]+/g, ' ')
}

function cut(text: string | null): string | null {
  return text === null ? null : text.replaceAll('\u0000', '').slice(0, MAX_ANSWER_REASON_LENGTH)
}
