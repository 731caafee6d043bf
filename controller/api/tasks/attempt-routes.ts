/** Recovery after a loss of data, and running attempts unknown to the store. */
import { limitsOfBody } from '../../../protocol/resource-limits.ts'
import type { AttemptRecord } from '../../../protocol/messages.ts'
import type { Priority } from '../../../protocol/units.ts'
import type { QuarantinedAttempt } from '../../model/node.ts'
import { isAttempt } from '../../model/node.ts'
import { isFinal } from '../../model/task.ts'
import { surroundingsIn } from '../../../protocol/task-body.ts'
import type { Task, Node } from '../../model/placement.ts'
import type { Views } from '../../query/views.ts'
import type { TaskLogs } from '../../ports/task-logs.ts'
import { ask } from '../http/ask.ts'
import { signatureOf } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem, notFound } from '../http/errors.ts'
import { canonicalId } from '../http/names.ts'
import { operation } from '../http/operation.ts'
import { presentInstant } from '../http/instant.ts'
import { presentTask } from './present.ts'
import type { AttemptBody, RecoveryBody } from './attempt-schema.ts'
import {
  AdoptionSchema,
  AttemptChoiceSchema,
  AttemptListSchema,
  AttemptPathSchema,
  AttemptSchema,
  RecoverySchema,
} from './attempt-schema.ts'
import { TaskRef } from './schema.ts'

const getRecovery = operation({
  operationId: 'getRecovery',
  role: 'viewer',
  summary: 'Recovery state of the controller',
  description:
    'Returns whether the controller is in recovery, which nodes it waits for, and which nodes have ' +
    'reported events that the store does not have.',
  tags: ['nodes'],
  response: { 200: RecoverySchema },
})

const finishRecovery = operation(
  {
    operationId: 'finishRecovery',
    role: 'admin',
    summary: 'End the recovery without waiting for missing nodes',
    description:
      'Placements continue. Tasks on nodes that have not reported may then run twice, so make sure that ' +
      'these nodes are down. Has no effect if no recovery is in progress.',
    tags: ['nodes'],
    response: { 200: RecoverySchema },
  },
  ['store_failed'],
)

const listAttempts = operation({
  operationId: 'listAttempts',
  role: 'operator',
  summary: 'Running attempts unknown to the store',
  description: 'For the first 100 attempts, the response includes the current record of the GPU server.',
  tags: ['nodes'],
  response: { 200: AttemptListSchema },
})

const adoptAttempt = operation(
  {
    operationId: 'adoptAttempt',
    role: 'operator',
    summary: 'Adopt a quarantined attempt as a task',
    description: 'The owner is taken from the request; the record of the server is only a hint.',
    tags: ['nodes'],
    params: AttemptPathSchema,
    body: AdoptionSchema,
    response: { 200: TaskRef },
  },
  ['not_found', 'conflict', 'too_many_pending', 'store_failed'],
)

const stopAttempt = operation(
  {
    operationId: 'stopAttempt',
    role: 'operator',
    summary: 'Stop a quarantined attempt',
    description: 'The GPU server receives the command with the next heartbeat.',
    tags: ['nodes'],
    params: AttemptPathSchema,
    body: AttemptChoiceSchema,
    response: { 202: AttemptSchema },
  },
  ['not_found', 'conflict', 'store_failed'],
)

/** Maximum number of records requested from servers. */
const MAX_RECORDS = 100

/**
 * GET /recovery, POST /recovery/finish, GET /attempts, POST /attempts/{task_id}/{attempt}/adopt and …/stop.
 */
export function attemptRoutes(app: ApiApp, { commands, views, logs }: ApiContext): void {
  app.get('/recovery', { schema: getRecovery }, () => presentRecovery(views))

  app.post('/recovery/finish', { schema: finishRecovery }, async (request) => {
    await ask<null>((answer) => commands.finishRecovery(signatureOf(request), answer))
    return presentRecovery(views)
  })

  app.get('/attempts', { schema: listAttempts }, async () => ({ items: await presentAll(views, logs) }))

  app.post('/attempts/:task_id/:attempt/adopt', { schema: adoptAttempt }, async (request) => {
    const { params, body } = request
    const { node, quarantined } = choose(views, params, body.node_id)
    const { taskId, attempt } = quarantined
    const record = (await logs?.readRecord?.(node.id, taskId, attempt)) ?? null
    // After the server's answer: the task may have ended meanwhile.
    await refuseEnded(views, quarantined)
    const adoption = {
      taskId,
      attempt,
      nodeId: node.id,
      ...detailsOf(record, quarantined),
      owner: body.owner,
    }
    const given = {
      ...adoption,
      name: body.name ?? adoption.name,
      priority: (body.priority ?? adoption.priority) as Priority,
    }
    return presentTask(
      await ask<Task>((answer) => commands.adoptAttempt(given, signatureOf(request), answer)),
      views,
    )
  })

  app.post('/attempts/:task_id/:attempt/stop', { schema: stopAttempt }, async (request, reply) => {
    const { node, quarantined } = choose(views, request.params, request.body.node_id)
    const { taskId, attempt } = quarantined
    const by = signatureOf(request)
    await ask<null>((answer) => commands.stopAttempt({ taskId, attempt, nodeId: node.id }, by, answer))
    reply.code(202)
    return presentAttempt(node, { ...quarantined, stoppedBy: quarantined.stoppedBy ?? by }, null)
  })
}

/** A final state never changes. @throws ApiProblem 409 */
async function refuseEnded(views: Views, { taskId, attempt }: QuarantinedAttempt): Promise<void> {
  if (views.openTask(taskId) !== undefined) return
  const ended = await views.stored.task(taskId)
  if (ended === null) return
  const name = `${taskId}/${attempt}`
  throw new ApiProblem(
    'conflict',
    `Task ${taskId} ${isFinal(ended.state) ? `is already ${ended.state}` : 'has just ended'}. Stop ` +
      `its attempt: \`headroom attempts stop ${name}\`.`,
  )
}

/** Servers of versions without records report no command; such a task is never started again. */
const UNKNOWN_COMMAND = ['(unknown: adopted from a server that kept no record)']

function detailsOf(record: AttemptRecord | null, { taskId, residency }: QuarantinedAttempt) {
  // A swapped-out attempt is not noswap, whatever its request says: as noswap it might never return.
  const isInVram = residency === 'none' || residency === 'resident'
  const noswap = isInVram ? (record?.noswap ?? 1) : 0
  if (record === null) {
    return {
      name: taskId,
      command: UNKNOWN_COMMAND,
      limits: null,
      gpuMode: 'shared',
      noswap,
      priority: 2,
      onNodeLoss: 'wait',
    } as const
  }
  const command = record.is_lease ? null : (record.command ?? UNKNOWN_COMMAND)
  const onNodeLoss = record.command === null && !record.is_lease ? ('wait' as const) : record.on_node_loss
  return {
    name: record.name ?? taskId,
    command,
    ...surroundingsIn(record),
    limits: record.limits === undefined ? null : limitsOfBody(record.limits),
    gpuMode: record.gpu_mode,
    noswap,
    priority: record.priority,
    onNodeLoss,
  }
}

interface Chosen {
  readonly node: Node
  readonly quarantined: QuarantinedAttempt
}

function choose(
  views: Views,
  { task_id, attempt }: { readonly task_id: string; readonly attempt: string },
  nodeId: string | undefined,
): Chosen {
  const found = [...everyAttempt(views)].filter(({ node, quarantined }) => {
    return (
      isAttempt(quarantined, task_id, Number(attempt)) &&
      (nodeId === undefined || node.id === canonicalId(nodeId))
    )
  })
  const [only, second] = found
  if (only === undefined) throw notFound('attempt', `${task_id}/${attempt}`)
  if (second !== undefined)
    throw new ApiProblem('conflict', `${found.length} nodes report this attempt. Send node_id.`)
  return only
}

function* everyAttempt(views: Views): Generator<Chosen> {
  for (const node of views.nodes()) for (const quarantined of node.quarantine) yield { node, quarantined }
}

async function presentAll(views: Views, logs: TaskLogs | null): Promise<AttemptBody[]> {
  const all = [...everyAttempt(views)]
  const silent = new Set<string>()
  const bodies: AttemptBody[] = []
  for (const { node, quarantined } of all) {
    const isAsked = bodies.length < MAX_RECORDS && node.status === 'up' && !silent.has(node.id)
    const record = isAsked
      ? ((await logs?.readRecord?.(node.id, quarantined.taskId, quarantined.attempt)) ?? null)
      : null
    // A node that does not answer is not asked again.
    if (isAsked && record === null) silent.add(node.id)
    bodies.push(presentAttempt(node, quarantined, record))
  }
  return bodies
}

function presentAttempt(node: Node, one: QuarantinedAttempt, record: AttemptRecord | null): AttemptBody {
  return {
    task_id: one.taskId,
    attempt: one.attempt,
    node_id: node.id,
    node_name: node.name,
    gpus: one.gpus,
    vram_mib: one.vramMib,
    residency: one.residency,
    since: presentInstant(one.since),
    stopped_by: one.stoppedBy,
    record: record === null ? null : { name: record.name, owner: record.owner, command: record.command },
  }
}

function presentRecovery(views: Views): RecoveryBody {
  const { pause, recovery, awaitedSinceStart, ownMark, aheadNodes, contacts, resultUnknown } =
    views.recovery()
  return {
    placements_paused: pause,
    recovery:
      recovery === null
        ? null
        : {
            reason: recovery.reason,
            since: presentInstant(recovery.since),
            nodes_awaited: [...recovery.awaited],
          },
    nodes_awaited_since_start: awaitedSinceStart,
    nodes_heard: contacts,
    store: { epoch: ownMark.epoch, controller: ownMark.controller, event_seq: ownMark.lastEventSeq },
    nodes_ahead: aheadNodes.map(([node_id, { name, reason, epoch, controller, eventSeq, since }]) => ({
      ...{ node_id, name, reason, epoch, controller },
      event_seq: eventSeq,
      since: presentInstant(since),
    })),
    result_unknown: resultUnknown.map(({ spec }) => spec.id),
    quarantined_attempts: [...everyAttempt(views)].length,
  }
}
