import type { ApiApp, ApiContext } from '../context.ts'
import { csvLine, orCsv, sendCsv } from '../http/csv.ts'
import { presentInstant } from '../http/instant.ts'
import { inOrder, type Part } from '../http/keyed-order.ts'
import { operation } from '../http/operation.ts'
import { createOwnerFigures } from './owner-figures.ts'
import { OwnerListSchema, OwnerQuerySchema, type OwnerBody, type OwnerSort } from './schema.ts'

const listOwners = operation({
  operationId: 'listOwners',
  role: 'viewer',
  summary: 'Owners of open tasks: what they use, wait for and lose',
  description:
    'Sums over the open tasks of each owner, up to two seconds old. Tasks that were submitted without ' +
    'authentication have the owner null.',
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

/** GET /owners. */
export function ownerRoutes(app: ApiApp, { views, ownerLimits }: ApiContext): void {
  const figures = createOwnerFigures(views)
  app.get('/owners', { schema: listOwners }, async ({ query }, reply) => {
    const { q, sort = 'lost', order, limit = DEFAULT_LIMIT, cursor = null } = query
    const { at, owners } = await figures()
    const { rest, total, cursorAfter } = inOrder(
      owners.filter(({ owner }) => q === undefined || (owner ?? '').includes(q)),
      {
        sort,
        direction: order ?? (sort === 'name' ? 'asc' : 'desc'),
        // The owner without a name is told from one with an empty name.
        placeOf: (owner) => [...KEYS[sort](owner), owner.owner ?? '', owner.owner === null ? 0 : 1],
        types: [...(sort === 'name' ? [] : (['number'] as const)), 'string', 'number'],
      },
      cursor,
    )
    if (query.format === 'csv') return sendCsv(reply, 'owners', query, csvOf(rest))
    const items = rest.slice(0, limit)
    const last = items.at(-1)
    return {
      at: presentInstant(at),
      limits: { pending_tasks: ownerLimits.maxPending, placed_gpus: ownerLimits.maxPlacedGpus },
      items,
      next_cursor: rest.length > items.length && last !== undefined ? cursorAfter(last) : null,
      total,
    }
  })
}

function* csvOf(owners: readonly OwnerBody[]): Generator<string> {
  yield csvLine([
    'owner',
    'running',
    'swapped_out',
    'pending',
    'on_hold',
    'gpus',
    'resident_mib',
    'out_mib',
    'lost_queue_seconds',
    'lost_swap_seconds',
    'lost_compute_seconds',
    'lost_total_seconds',
    'longest_wait_since',
  ])
  for (const { owner, tasks, gpus, resident_mib, out_mib, lost, longest_wait_since } of owners) {
    yield csvLine([
      owner,
      tasks.running,
      tasks.swapped_out,
      tasks.pending,
      tasks.on_hold,
      gpus,
      resident_mib,
      out_mib,
      lost.queue_seconds,
      lost.swap_seconds,
      lost.compute_seconds,
      lost.total_seconds,
      longest_wait_since,
    ])
  }
}
