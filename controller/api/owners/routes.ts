import type { ApiApp, ApiContext } from '../context.ts'
import { csvOf, orCsv, sendCsv, type CsvColumns } from '../http/csv.ts'
import { presentInstant } from '../http/instant.ts'
import { inOrder, type Part } from '../http/keyed-order.ts'
import { operation } from '../http/operation.ts'
import { createOwnerFigures } from './owner-figures.ts'
import { OwnerListSchema, OwnerQuerySchema, type OwnerBody, type OwnerSort } from './schema.ts'

const listOwners = operation({
  operationId: 'listOwners',
  role: 'viewer',
  answerHeaders: ['Content-Disposition'],
  summary: 'Owners of open tasks: their usage, waiting tasks and unserved GPU time',
  description:
    'Returns totals for the open tasks of each owner. The totals can be up to two seconds old. Tasks that ' +
    'were submitted without authentication have the owner null.',
  tags: ['tasks'],
  querystring: OwnerQuerySchema,
  response: { 200: orCsv(OwnerListSchema) },
})

const DEFAULT_LIMIT = 200

/** Then by name, so that each order is total. */
const KEYS: Readonly<Record<OwnerSort, (owner: OwnerBody) => readonly Part[]>> = {
  lost: ({ lost }) => [lost.total_seconds],
  gpus: ({ gpus }) => [gpus],
  running: ({ tasks }) => [tasks.running],
  pending: ({ tasks }) => [tasks.pending],
  name: () => [],
}

const CSV: CsvColumns<OwnerBody> = {
  owner: ({ owner }) => owner,
  running: ({ tasks }) => tasks.running,
  swapped_out: ({ tasks }) => tasks.swapped_out,
  pending: ({ tasks }) => tasks.pending,
  on_hold: ({ tasks }) => tasks.on_hold,
  gpus: ({ gpus }) => gpus,
  resident_mib: (owner) => owner.resident_mib,
  out_mib: (owner) => owner.out_mib,
  lost_queue_seconds: ({ lost }) => lost.queue_seconds,
  lost_swap_seconds: ({ lost }) => lost.swap_seconds,
  lost_compute_seconds: ({ lost }) => lost.compute_seconds,
  lost_total_seconds: ({ lost }) => lost.total_seconds,
  longest_wait_since: (owner) => owner.longest_wait_since,
}

/** GET /owners. */
export function ownerRoutes(app: ApiApp, { views, ownerLimits }: ApiContext): void {
  const figures = createOwnerFigures(views)
  app.get('/owners', { schema: listOwners }, async ({ query }, reply) => {
    const { q, owner: only, sort = 'lost', order, limit = DEFAULT_LIMIT, cursor = null } = query
    const { at, owners } = await figures()
    const { rest, total, cursorAfter } = inOrder(
      owners.filter(
        ({ owner }) =>
          (q === undefined || (owner ?? '').includes(q)) && (only === undefined || owner === only),
      ),
      {
        sort,
        direction: order ?? (sort === 'name' ? 'asc' : 'desc'),
        // The owner without a name is told from one with an empty name.
        placeOf: (owner) => [...KEYS[sort](owner), owner.owner ?? '', owner.owner === null ? 0 : 1],
        types: [...(sort === 'name' ? [] : (['number'] as const)), 'string', 'number'],
      },
      cursor,
    )
    if (query.format === 'csv') return sendCsv(reply, 'owners', query, csvOf(CSV, rest))
    return {
      at: presentInstant(at),
      limits: { pending_tasks: ownerLimits.maxPending, placed_gpus: ownerLimits.maxPlacedGpus },
      items: rest.slice(0, limit),
      next_cursor: cursorAfter(limit),
      total,
    }
  })
}
