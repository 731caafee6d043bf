import type { Decision } from '../../model/decision.ts'
import { listOf } from '../../model/task.ts'
import type { Task } from '../../model/placement.ts'
import type { Views } from '../../query/views.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { notFound } from '../http/errors.ts'
import { startPart } from '../twin/forecasts.ts'
import { operation } from '../http/operation.ts'
import { presentExplanation } from './present-explanation.ts'
import { presentInstant } from '../http/instant.ts'
import { presentTask, presentTaskRecord } from '../tasks/present.ts'
import { ExplanationSchema, type ExplanationBody } from './explanation-schema.ts'
import { ForecastQuerySchema } from '../twin/schema.ts'
import { TaskPathSchema, type PlacementBody, type TaskBody } from '../tasks/schema.ts'

const explainTask = operation(
  {
    operationId: 'explainTask',
    role: 'viewer',
    summary: 'Why a task waits, or where it is placed',
    description:
      'For a waiting task: the verdict of each node and the smallest changes that would place it. For a ' +
      'placed task: the decisions behind its placement.',
    tags: ['tasks'],
    params: TaskPathSchema,
    querystring: ForecastQuerySchema,
    response: { 200: ExplanationSchema },
  },
  ['not_found', 'store_failed'],
)

/** GET /tasks/{task_id}/explain. */
export function explainRoutes(app: ApiApp, { views, twin }: ApiContext): void {
  app.get(
    '/tasks/:task_id/explain',
    { schema: explainTask },
    async ({ params, query: { forecast = 'latest' } }) => {
      const task = views.openTask(params.task_id)
      const isWaiting =
        task !== undefined && task.placement === null && task.firstStartedAt === null && !task.isHeld
      if (task !== undefined) {
        const explained = await explainOpen(task, views)
        return { ...explained, ...(await startPart(twin, params.task_id, isWaiting, forecast)) }
      }
      const record = await views.stored.task(params.task_id)
      if (record === null) throw notFound('task', params.task_id)
      return {
        ...explanationOf(presentTaskRecord(record)),
        ...NOTHING_OPEN,
        ...(await startPart(twin, params.task_id, false, forecast)),
      }
    },
  )
}

/** Explanation without the forecast of the twin. */
type Explained = Omit<ExplanationBody, 'forecast' | 'forecast_unavailable_because'>

const NOTHING_OPEN = {
  verdicts: null,
  would_fit_if: null,
  victim: null,
  placed_by: null,
  swapped_out_by: null,
}

/** Reads memory first without an await, then the store. */
async function explainOpen(task: Task, views: Views): Promise<Explained> {
  const now = { ...explanationOf(presentTask(task, views)), ...presentExplanation(views.explainFully(task)) }
  const { placement, spec } = task
  if (placement === null) return { ...now, placed_by: null, swapped_out_by: null }
  const since = placement.assignedAt
  const [placements, swapOuts] = await Promise.all([
    views.stored.decisions({ ...OF_TASK, taskId: spec.id, kind: 'placement', limit: 1 }),
    views.stored.decisions({ ...OF_TASK, taskId: spec.id, kind: 'swap_out', limit: SWAP_OUTS_LOOKED_AT }),
  ])
  return {
    ...now,
    placed_by: decided(placements.find(({ at }) => at >= since)),
    swapped_out_by: decided(swapOuts.find(({ at, victimIds }) => at >= since && victimIds.includes(spec.id))),
  }
}

/** Swap-outs made for this task are in the result too, so the right one may not come first. */
const SWAP_OUTS_LOOKED_AT = 20
const OF_TASK = { afterNumber: null, beforeNumber: null, nodeId: null } as const

function decided(decision: Decision | undefined): ExplanationBody['placed_by'] {
  if (decision === undefined) return null
  const { number, at, rule, sentence } = decision
  return { number, at: presentInstant(at), rule, sentence }
}

function explanationOf(task: TaskBody) {
  const { id, state, residency, wait, placement } = task
  return { task_id: id, state, residency, waits: wait !== null, sentence: sentenceFor(task), wait, placement }
}

/** Returns a human-readable sentence; the engine provides the sentence of every wait. */
function sentenceFor({ state, residency, wait, placement, end_reason }: TaskBody): string {
  if (wait !== null) return wait.sentence
  if (listOf(state) === 'completed')
    return end_reason === null ? `It is ${state}.` : `It is ${state}: ${end_reason}.`
  if (placement === null) return 'It is pending and will be looked at in the next cycle.'
  const where = `GPU ${placement.gpus.join(', ')} of ${placement.node_name}`
  if (residency === 'swapped_out') return `It is swapped out on ${where} ${wishOf(placement)}`
  return `It is ${state} on ${where}, ${residency === 'none' ? 'not started yet' : residency.replace('_', ' ')}.`
}

function wishOf({ can_signal: canSignal }: PlacementBody): string {
  if (canSignal) return 'and does not want the GPU.'
  return 'and cannot signal that it wants the GPU. It is swapped in for a probe when VRAM is free there.'
}
