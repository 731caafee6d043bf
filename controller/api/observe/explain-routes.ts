import type { Task } from '../../model/placement.ts'
import type { Decision } from '../../model/decision.ts'
import { listOf } from '../../model/task.ts'
import type { FullExplanation, WordedChange } from '../../query/preview/explain-fully.ts'
import type { NodeVerdict } from '../../query/explain/explain-nodes.ts'
import type { Views } from '../../query/views.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { notFound } from '../http/errors.ts'
import { presentInstant, presentInstantOrNull } from '../http/instant.ts'
import { operation } from '../http/operation.ts'
import { presentTask, presentTaskRecord } from '../tasks/present.ts'
import { TaskPathSchema, type PlacementBody, type TaskBody } from '../tasks/schema.ts'
import { startPart } from '../twin/forecasts.ts'
import { ForecastQuerySchema } from '../twin/schema.ts'
import { ExplanationSchema, type ExplanationBody } from './explanation-schema.ts'

const explainTask = operation(
  {
    operationId: 'explainTask',
    role: 'viewer',
    summary: 'Explain why a task waits, or how it was placed',
    description:
      'For a waiting task: why each node does or does not admit it, and the smallest changes that would ' +
      'place it. ' +
      'For a placed task: the decisions behind its placement.',
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
  if (placement === null) return 'It is pending and will be considered in the next scheduling cycle.'
  const where = `GPU ${placement.gpus.join(', ')} of ${placement.node_name}`
  if (residency === 'swapped_out') return `It is swapped out on ${where} ${wishOf(placement)}`
  return (
    `It is ${state} on ${where}, ` +
    `${residency === 'none' ? 'not started yet' : residency.replace('_', ' ')}.`
  )
}

function wishOf({ can_signal: canSignal }: PlacementBody): string {
  if (canSignal) return 'and does not want the GPU.'
  return (
    'and cannot signal that it wants the GPU. It is swapped in for a probe when VRAM is free on its ' +
    'GPUs.'
  )
}

type Parts = Pick<ExplanationBody, 'verdicts' | 'would_fit_if' | 'victim'>

function presentExplanation({ nodes, wouldFitIf, victim }: FullExplanation): Parts {
  return {
    verdicts:
      nodes === null
        ? null
        : { nodes: nodes.named.map(presentVerdict), others: nodes.others, node_count: nodes.nodeCount },
    would_fit_if:
      wouldFitIf === null
        ? null
        : {
            fits_alone: wouldFitIf.fitsAlone,
            changes: wouldFitIf.changes.map(presentChange),
            nodes_tried: wouldFitIf.nodesTried,
            nodes: wouldFitIf.nodes,
          },
    victim:
      victim === null
        ? null
        : {
            standing: victim.standing,
            eligible_at: presentInstantOrNull(victim.eligibleAt),
            sentence: victim.sentence,
          },
  }
}

function presentVerdict({ nodeId, name, reason, haveMib, needMib, gpus }: NodeVerdict) {
  return {
    node_id: nodeId,
    name,
    fits: reason === null,
    reason,
    have_mib: haveMib,
    need_mib: needMib,
    gpus: gpus.map(({ gpu, admitsNowMib, admitsAfterSwapMib, freeMib, commitRoomMib, reachMib, score }) => ({
      gpu,
      admits_now_mib: admitsNowMib,
      admits_after_swap_mib: admitsAfterSwapMib,
      free_mib: freeMib,
      commit_room_mib: commitRoomMib,
      reach_mib: reachMib,
      ...score,
    })),
  }
}

function presentChange({ change, sentence, proviso }: WordedChange) {
  const { node } = change
  const isNoswap = change.change === 'noswap'
  return {
    change: change.change,
    scope: 'scope' in change ? change.scope : null,
    from: 'from' in change ? change.from : isNoswap ? 1 : null,
    to: 'to' in change ? change.to : isNoswap ? 0 : null,
    group: 'group' in change ? change.group : null,
    task_id: 'task' in change ? change.task.spec.id : null,
    at: presentInstantOrNull('at' in change ? change.at : null),
    node_id: node.id,
    node_name: node.name,
    sentence,
    proviso,
  }
}
