/** A channel into a running task: a command besides its own, or a connection to one of its ports. */
import type { ChannelTarget } from '../../../protocol/channel-messages.ts'
import { MAX_CHANNEL_COMMAND_BYTES } from '../../../protocol/limits.ts'
import type { Node, Task } from '../../model/placement.ts'
import { subjectOf } from '../auth/gate.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem, invalidField } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { openTask } from '../tasks/open-task.ts'
import { TaskPathSchema } from '../tasks/schema.ts'
import { OpenChannels } from './open-channels.ts'
import { ChannelRequestSchema, ChannelSchema, type ChannelRequestBody } from './schema.ts'
import { acceptChannels, CHANNEL_PATH } from './upgrade.ts'

const openChannel = operation(
  {
    operationId: 'openChannel',
    role: 'submitter',
    ownersOnly: 'always',
    // Each channel has two audit entries of its own, at its begin and its end.
    routine: true,
    summary: 'Run a command in a running task, or connect to one of its ports',
    description:
      'Available only to the owner of the task, while the task is in VRAM, on GPU servers that run with ' +
      '--allow-attach. The command runs with the user, environment, folder, limits and container of the ' +
      'task. It is stopped while the task is swapped out, and it ends when the connection closes. The ' +
      'client connects to `path`; docs/rest.md describes the frames.',
    tags: ['tasks'],
    params: TaskPathSchema,
    body: ChannelRequestSchema,
    response: { 201: ChannelSchema },
  },
  ['not_found', 'conflict', 'node_unavailable', 'too_many_streams', 'store_failed'],
)

/** POST /tasks/{task_id}/channels. */
export function channelRoutes(app: ApiApp, { access, views, channels, fleet }: ApiContext): void {
  const open = channels === null ? null : new OpenChannels(channels, access)
  if (open !== null) acceptChannels(app as never, open)
  app.post('/tasks/:task_id/channels', { schema: openChannel }, async (request, reply) => {
    const task = await openTask(views, request.params.task_id)
    const target = targetOf(request.body)
    if (fleet === 'simulated' || open === null)
      throw new ApiProblem('conflict', 'The fleet is simulated: its tasks have no processes.')
    const { node, attempt } = placeOf(task)
    const taskId = task.spec.id
    const place = { taskId, attempt, nodeId: node.id, nodeName: node.name, subject: subjectOf(request) }
    const opened = await open.open(place, target)
    if (typeof opened !== 'string') throw refused(opened, node, task, target)
    return reply.code(201).send({
      task_id: taskId,
      attempt,
      node_id: node.id,
      node_name: node.name,
      path: `${CHANNEL_PATH}${opened}`,
    })
  })
}

function targetOf({ command, terminal = null, port }: ChannelRequestBody): ChannelTarget {
  if (port !== undefined) return { kind: 'port', port }
  const words = command ?? []
  const bytes = words.reduce((sum, word) => sum + Buffer.byteLength(word) + 1, 0)
  if (words[0] === '') throw invalidField('/command/0', 'command.0 must be the program to run, got ""')
  if (bytes > MAX_CHANNEL_COMMAND_BYTES)
    throw invalidField(
      '/command',
      `command must not exceed ${MAX_CHANNEL_COMMAND_BYTES} bytes; it has ${bytes}`,
    )
  return { kind: 'exec', command: words, terminal }
}

/** @throws ApiProblem 409 */
function placeOf({ placement, spec, state, attempt }: Task): {
  readonly node: Node
  readonly attempt: number
} {
  if (spec.command === null)
    throw new ApiProblem('conflict', `Task ${spec.id} is a lease: Headroom runs no process for it.`)
  if (placement === null || state !== 'running')
    throw new ApiProblem('conflict', `Task ${spec.id} is ${state}. Wait until it runs.`)
  const { node, residency } = placement
  if (!node.features.includes('channels'))
    throw new ApiProblem(
      'conflict',
      `Node ${node.name} does not allow access to running tasks. Start its GPU server with --allow-attach.`,
    )
  if (residency !== 'resident') throw notInVram(spec.id)
  return { node, attempt }
}

function notInVram(id: string): ApiProblem {
  return new ApiProblem(
    'conflict',
    `Task ${id} is swapped out and stopped. Try again when it is in VRAM (headroom task swap-in ${id}).`,
  )
}

function refused(
  answer: { readonly refused: string } | null,
  node: Node,
  { spec }: Task,
  target: ChannelTarget,
): ApiProblem {
  if (answer === null)
    return new ApiProblem('node_unavailable', `Node ${node.name} does not respond. Try again later.`, {
      headers: { 'retry-after': '5' },
    })
  const port = target.kind === 'port' ? target.port : 0
  switch (answer.refused) {
    case 'not_in_vram':
    case 'the task is stopped':
      return notInVram(spec.id)
    case 'unknown_attempt':
      return new ApiProblem('conflict', `Task ${spec.id} no longer runs on node ${node.name}.`)
    case 'channels_not_allowed':
      return new ApiProblem(
        'conflict',
        `Node ${node.name} does not allow access to running tasks. Start its GPU server with --allow-attach.`,
      )
    case 'old_guard':
      return new ApiProblem(
        'conflict',
        `Task ${spec.id} was started by an earlier version of the GPU server and cannot run another command.`,
      )
    case 'port_closed':
      return new ApiProblem('conflict', `No process of task ${spec.id} listens on TCP port ${port}.`)
    case 'port_contested':
      return new ApiProblem(
        'conflict',
        `Another process on node ${node.name} shares port ${port} with the task.`,
      )
    case 'port_refused':
      return new ApiProblem('conflict', `Task ${spec.id} does not accept connections on port ${port}.`)
    case 'too_many_channels':
      return new ApiProblem('conflict', `Too many channels are open on node ${node.name}. Close one first.`)
    default:
      return new ApiProblem('conflict', `Node ${node.name} refused the channel: ${answer.refused}.`)
  }
}
