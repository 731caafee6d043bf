import type { Placement } from '../../model/placement.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem, notFound } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { presentPlacement } from './present.ts'
import { AssignmentSchema, type AssignmentBody } from './assignment-schema.ts'
import { TaskPathSchema } from './schema.ts'

const getAssignment = operation(
  {
    operationId: 'getAssignment',
    role: 'viewer',
    summary: 'Current placement of a task',
    description: '404 for a pending or final task, which is not assigned to a node.',
    tags: ['tasks'],
    params: TaskPathSchema,
    response: { 200: AssignmentSchema },
  },
  ['not_found', 'store_failed'],
)

/** GET /tasks/{task_id}/assignment. */
export function assignmentRoutes(app: ApiApp, { views }: ApiContext): void {
  app.get('/tasks/:task_id/assignment', { schema: getAssignment }, async ({ params }) => {
    const task = views.openTask(params.task_id)
    if (task?.placement) return presentAssignment(task.placement)
    const state = task?.state ?? (await views.stored.task(params.task_id))?.state
    if (state === undefined) throw notFound('task', params.task_id)
    throw new ApiProblem('not_found', `The task is ${state} and not assigned to a node.`)
  })
}

function presentAssignment(placement: Placement): AssignmentBody {
  const { task, node } = placement
  return {
    task_id: task.spec.id,
    state: task.state as AssignmentBody['state'],
    node_status: node.status,
    attempt: task.attempt,
    generation: placement.generation,
    residency: placement.residency,
    noswap: placement.noswap,
    on_node_loss: task.spec.onNodeLoss,
    ...presentPlacement(placement),
  }
}
