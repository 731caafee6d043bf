import type { ApiApp, ApiContext } from '../context.ts'
import { invalidField } from '../http/errors.ts'
import { MAX_SERIES_VALUES } from '../http/limits.ts'
import { operation } from '../http/operation.ts'
import { presentSeries } from './present-series.ts'
import { SeriesQuerySchema, SeriesSchema } from './series-schema.ts'
import { seriesQueryOf } from './series-request.ts'
import type { Grid, SeriesQuery } from '../../series/query.ts'

const getSeries = operation(
  {
    operationId: 'getSeries',
    summary: 'Utilization, starvation, VRAM, queue and swaps over time',
    description:
      'Averages over equal intervals, as columns on a common time axis. Names are listed in ' +
      'docs/series.md; the response includes the chosen resolution.',
    tags: ['summary'],
    role: 'viewer',
    querystring: SeriesQuerySchema,
    response: { 200: SeriesSchema },
  },
  ['store_failed'],
)

/** Maximum number of marked configuration changes, the latest ones. */
const MAX_CHANGES = 100

/** GET /series. */
export function seriesRoutes(app: ApiApp, { views, series }: ApiContext): void {
  app.get('/series', { schema: getSeries }, async ({ query: sent }, reply) => {
    const query = seriesQueryOf(sent, views)
    const grid = series.grid(query)
    refuseTooMuch(query, grid)
    const answer = series.answer(query)
    const to = grid.from + grid.points * grid.stepMs
    const changes = (await views.stored.configRevisions({ before: null, limit: MAX_CHANGES })).filter(
      ({ at }) => at >= grid.from && at < to,
    )
    // For long columns of numbers a serialiser made from the schema is several times slower.
    reply.type('application/json; charset=utf-8').serializer(JSON.stringify)
    return presentSeries(answer, changes)
  })
}

function refuseTooMuch({ names, scopes }: SeriesQuery, { points }: Grid): void {
  const lines = names.length * scopes.length
  if (lines * points <= MAX_SERIES_VALUES) return
  const most = Math.floor(MAX_SERIES_VALUES / lines)
  const advice =
    most > 0
      ? `with these scopes and names max_points must be at most ${most}`
      : 'request fewer scopes or names'
  throw invalidField(
    '/max_points',
    `${scopes.length} scopes × ${names.length} names × ${points} points exceed the limit of ` +
      `${MAX_SERIES_VALUES} values; ${advice}`,
  )
}
