/** The process of a lease: a token with which it registers at the GPU server of its host. */
import { createHash, randomBytes } from 'node:crypto'
import type { Node, Task } from '../../model/placement.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { AttachmentSchema } from './lease-schema.ts'
import { openTask } from './open-task.ts'
import { TaskPathSchema } from './schema.ts'

const attachLease = operation(
  {
    operationId: 'attachLease',
    role: 'submitter',
    ownersOnly: 'always',
    summary: 'Create a token that a process uses to attach to a lease',
    description:
      'Available only to the owner of the lease, while the lease is in VRAM. A process that sends ' +
      'the token to the socket within 60 s is attached to the lease: its VRAM counts toward ' +
      'the lease, and the process is stopped while the lease is swapped out. A new token replaces the ' +
      'previous one.',
    tags: ['tasks'],
    params: TaskPathSchema,
    response: { 200: AttachmentSchema },
  },
  ['not_found', 'conflict', 'node_unavailable'],
)

const TOKEN_BYTES = 32

/** POST /tasks/{task_id}/attachment. */
export function attachmentRoutes(app: ApiApp, { views, logs }: ApiContext): void {
  app.post('/tasks/:task_id/attachment', { schema: attachLease }, async ({ params }) => {
    const task = await openTask(views, params.task_id)
    const { node, attempt } = placeOf(task)
    const token = randomBytes(TOKEN_BYTES).toString('base64url')
    const hash = createHash('sha256').update(token).digest('hex')
    const answer = (await logs?.expectProcess?.(node.id, task.spec.id, attempt, hash)) ?? null
    if (answer === null) {
      throw new ApiProblem('node_unavailable', `Node ${node.name} does not respond. Try again later.`, {
        headers: { 'retry-after': '5' },
      })
    }
    if ('refused' in answer)
      throw new ApiProblem('conflict', `Node ${node.name} does not accept the process: ${answer.refused}.`)
    return {
      task_id: task.spec.id,
      attempt,
      node_id: node.id,
      node_name: node.name,
      socket: answer.socket,
      token,
    }
  })
}

/** @throws ApiProblem 409 */
function placeOf(task: Task): { readonly node: Node; readonly attempt: number } {
  const { placement, spec } = task
  if (spec.command !== null)
    throw new ApiProblem('conflict', `Task ${spec.id} runs a command. A process can attach only to a lease.`)
  if (placement === null || task.state !== 'running' || placement.residency !== 'resident')
    throw new ApiProblem('conflict', `Lease ${spec.id} is not in VRAM yet. Wait until it runs.`)
  if (!placement.node.features.includes('attach')) {
    throw new ApiProblem(
      'conflict',
      `The GPU server of node ${placement.node.name} does not accept processes for leases.`,
    )
  }
  return { node: placement.node, attempt: task.attempt }
}
