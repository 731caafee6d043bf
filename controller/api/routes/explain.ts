import { listOf } from '../../domain/task.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { notFound } from '../errors.ts'
import { operation } from '../operation.ts'
import { presentTask, presentTaskRecord } from '../present/task.ts'
import { ExplanationSchema, TaskPathSchema, type TaskBody } from '../schema/task.ts'

const explainTask = operation(
  {
    operationId: 'explainTask',
    role: 'viewer',
    summary: 'Why a task waits, or where it sits',
    tags: ['tasks'],
    params: TaskPathSchema,
    response: { 200: ExplanationSchema },
  },
  ['not_found', 'store_failed'],
)

/** GET /tasks/{task_id}/explain. */
export function explainRoutes(app: ApiApp, { views }: ApiContext): void {
  app.get('/tasks/:task_id/explain', { schema: explainTask }, async ({ params }) => {
    const task = views.openTask(params.task_id)
    if (task !== undefined) return explanationOf(presentTask(task, views))
    const record = await views.stored.task(params.task_id)
    if (record === null) throw notFound('task', params.task_id)
    return explanationOf(presentTaskRecord(record))
  })
}

function explanationOf(task: TaskBody) {
  const { id, state, residency, wait, placement } = task
  return { task_id: id, state, residency, waits: wait !== null, sentence: sentenceFor(task), wait, placement }
}

/** One sentence for people; the engine words every wait. */
function sentenceFor({ state, residency, wait, placement, end_reason }: TaskBody): string {
  if (wait !== null) return wait.sentence
  if (listOf(state) === 'completed') return end_reason === null ? `It is ${state}.` : `It is ${state}: ${end_reason}.`
  if (placement === null) return 'It is pending and will be looked at in the next cycle.'
  const where = `GPU ${placement.gpus.join(', ')} of ${placement.node_name}`
  if (residency === 'swapped_out') return `It is swapped out on ${where} and does not want the GPU.`
  return `It is ${state} on ${where}, ${residency === 'none' ? 'not started yet' : residency.replace('_', ' ')}.`
}
