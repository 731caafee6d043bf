import type { Decision } from '../../model/decision.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { invalidField, notFound } from '../http/errors.ts'
import { presentInstant } from '../http/instant.ts'
import { operation } from '../http/operation.ts'
import {
  DecisionPageSchema,
  DecisionPathSchema,
  DecisionQuerySchema,
  DecisionRef,
  type DecisionBody,
} from './decision-schema.ts'
import { subjectsOf } from './event-query.ts'

const listDecisions = operation(
  {
    operationId: 'listDecisions',
    role: 'viewer',
    summary: 'Decisions (placements, swaps and growths) with their candidates',
    description:
      'Newest first, or oldest first with `after`. The newest 200,000 decisions of the last 30 days are ' +
      'stored.',
    tags: ['decisions'],
    querystring: DecisionQuerySchema,
    response: { 200: DecisionPageSchema },
  },
  ['store_failed'],
)

const getDecision = operation(
  {
    operationId: 'getDecision',
    role: 'viewer',
    summary: 'One decision',
    description:
      'Returns a placement, swap or growth with its candidates, their ranking and the choice. Returns ' +
      '404 if the decision is no longer stored.',
    tags: ['decisions'],
    params: DecisionPathSchema,
    response: { 200: DecisionRef },
  },
  ['not_found', 'store_failed'],
)

const DEFAULT_LIMIT = 50

/** GET /decisions and /decisions/{number}. */
export function decisionRoutes(app: ApiApp, { views }: ApiContext): void {
  app.get('/decisions', { schema: listDecisions }, async ({ query }) => {
    const { after = null, before = null, kind = null, limit = DEFAULT_LIMIT } = query
    if (after !== null && before !== null)
      throw invalidField('/before', 'query parameter before cannot be combined with after')
    const filter = { afterNumber: after, beforeNumber: before, ...(await subjectsOf(query, views)), kind }
    // One extra decision tells whether there is another page.
    const found = await views.stored.decisions({ ...filter, limit: limit + 1 })
    const items = found.slice(0, limit).map(presentDecision)
    const last = items.at(-1)?.number ?? null
    if (after !== null) return { items, next_before: null, next_after: last ?? after }
    return { items, next_before: found.length > limit ? last : null, next_after: null }
  })

  app.get('/decisions/:number', { schema: getDecision }, async ({ params }) => {
    const decision = await views.stored.decision(Number(params.number))
    if (decision === null) throw notFound('decision', params.number)
    return presentDecision(decision)
  })
}

function presentDecision(decision: Decision): DecisionBody {
  return {
    number: decision.number,
    at: presentInstant(decision.at),
    kind: decision.kind,
    rule: decision.rule,
    sentence: decision.sentence,
    task_id: decision.taskId,
    task_name: decision.taskName,
    node_id: decision.nodeId,
    node_name: decision.nodeName,
    gpus: decision.gpus,
    caused_by: decision.causedBy,
    waited_seconds: decision.waitedMs === null ? null : decision.waitedMs / 1000,
    strategy: decision.strategy,
    gpus_considered: decision.gpusConsidered.map(({ nodeId, nodeName, gpu, key1, key2, isChosen }) => ({
      node_id: nodeId,
      node_name: nodeName,
      gpu,
      key1,
      key2,
      chosen: isChosen,
    })),
    gpus_more: decision.hasMoreGpus,
    victim_ids: decision.victimIds,
    missing: decision.missing,
    candidates: decision.candidates.map(
      ({ taskId, taskName, gpu, level, isAboveRequest = false, lastSwapOut, mib, idleMs, chosenBy }) => ({
        task_id: taskId,
        task_name: taskName ?? null,
        gpu,
        level,
        above_request: isAboveRequest,
        last_swap_out: lastSwapOut,
        mib,
        idle_seconds: idleMs / 1000,
        chosen_by: chosenBy,
      }),
    ),
    candidates_left_out: decision.candidatesLeftOut,
    swap_number: decision.swapNumber,
    others_waiting: decision.others.map(({ taskId, what, waitedMs }) => ({
      task_id: taskId,
      what,
      waited_seconds: waitedMs / 1000,
    })),
    others_left_out: decision.othersLeftOut,
  }
}
