import type { ConfigFields } from '../../model/config.ts'
import type { ConfigRecord } from '../../ports/store.ts'
import { MEASURES } from '../../series/measures.ts'
import type { Grid, SeriesQuery } from '../../series/query.ts'
import { SLOT_MS } from '../../series/retention.ts'
import type { SeriesAnswer } from '../../series/series.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { invalidField } from '../http/errors.ts'
import { presentInstant } from '../http/instant.ts'
import { MAX_SERIES_VALUES } from '../http/limits.ts'
import { operation } from '../http/operation.ts'
import { seriesQueryOf, textOf } from './series-request.ts'
import { SeriesQuerySchema, SeriesSchema, type SeriesBody } from './series-schema.ts'

const getSeries = operation(
  {
    operationId: 'getSeries',
    summary: 'Utilization, starvation, VRAM, queue and swaps over time',
    description:
      'Averages over equal intervals in columnar form, on a common time axis. Names are listed in ' +
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
    const revisions = await views.stored.configRevisions({ before: null, limit: MAX_CHANGES })
    const changes = revisions
      .map((record, at) => ({ record, before: revisions[at + 1] ?? null }))
      .filter(({ record: { at } }) => at >= grid.from && at < to)
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
      ? `with these scopes and names, max_points must be at most ${most}`
      : 'request fewer scopes or names'
  throw invalidField(
    '/max_points',
    `${scopes.length} scopes × ${names.length} names × ${points} points exceed the limit of ` +
      `${MAX_SERIES_VALUES} values; ${advice}`,
  )
}

interface ConfigChange {
  readonly record: ConfigRecord
  /** The revision before it; null: not known. */
  readonly before: ConfigRecord | null
}

/** Fields that the title of a change names; the others are counted. */
const NAMED_FIELDS = 2

/** `Configuration 2 by ada: default_vram_overcommit_percent 0 → 50`. */
function titleOf({ record, before }: ConfigChange): string {
  const title = `Configuration ${record.revision}${record.author === null ? '' : ` by ${record.author}`}`
  const changed = before === null ? [] : changedFields(before.fields, record.fields)
  if (changed.length === 0) return title
  const more = changed.length - NAMED_FIELDS
  return `${title}: ${changed.slice(0, NAMED_FIELDS).join(', ')}${more > 0 ? `, and ${more} more` : ''}`
}

function changedFields(before: ConfigFields, after: ConfigFields): readonly string[] {
  const old = new Map<string, unknown>(Object.entries(before))
  return Object.entries(after).flatMap(([name, value]) => {
    const [from, to] = [JSON.stringify(old.get(name)), JSON.stringify(value)]
    return from === to ? [] : [`${name} ${from} → ${to}`]
  })
}

function presentSeries(
  { grid, columns, storms }: SeriesAnswer,
  changes: readonly ConfigChange[],
): SeriesBody {
  const { from, stepMs, points, tier } = grid
  return {
    from: presentInstant(from),
    to: presentInstant(from + points * stepMs),
    resolution_seconds: (SLOT_MS[tier] as number) / 1000,
    step_seconds: stepMs / 1000,
    x: Array.from({ length: points }, (_, point) => (from + point * stepMs) / 1000),
    series: columns.map(({ scope, name, values }) => ({
      scope: textOf(scope),
      name,
      unit: MEASURES[name].unit,
      values: values.map(rounded),
    })),
    marks: [
      ...changes.map((change) => ({
        kind: 'config_changed' as const,
        from: change.record.at / 1000,
        to: change.record.at / 1000,
        text: titleOf(change),
      })),
      ...storms.map((storm) => ({
        kind: 'swap_storm' as const,
        from: storm.from / 1000,
        to: storm.to / 1000,
        text: `Swap storm: ${storm.swaps} swaps in ${(storm.to - storm.from) / 60_000} min`,
      })),
    ],
  }
}

/** Four digits after the point say all there is to see; whole numbers stay as they are. */
function rounded(value: number | null): number | null {
  return value === null || Number.isInteger(value) ? value : Math.round(value * 10_000) / 10_000
}
