import { Type, type Static } from 'typebox'
import { MEASURE_NAMES, MEASURES } from '../../series/measures.ts'
import { MAX_POINTS } from '../http/limits.ts'
import { closed, count, instant, integer, list, oneOf, wordsOf } from '../http/fields-schema.ts'

const TEXT_LIMIT = 4_000

export const SeriesQuerySchema = closed({
  names: Type.Optional(
    wordsOf(
      MEASURE_NAMES,
      TEXT_LIMIT,
      'Names of series, separated by commas (default utilization_percent,starvation_percent)',
    ),
  ),
  scope: Type.Optional(
    Type.String({
      maxLength: TEXT_LIMIT,
      description:
        'Scopes, separated by commas (default cluster): `cluster`, `group:<id>`, `node:<node_id>`, ' +
        '`gpu:<node_id>/<index>`; `*` as ID or index means all',
    }),
  ),
  from: Type.Optional(
    Type.String({
      maxLength: 40,
      description: 'RFC 3339, or relative to now: `-90s`, `-15m`, `-1h`, `-7d`, `-2w` (default -1h)',
    }),
  ),
  to: Type.Optional(
    Type.String({ maxLength: 40, description: 'Same formats as `from`, or `now` (default)' }),
  ),
  max_points: Type.Optional(
    integer(1, MAX_POINTS, { description: 'Maximum number of points (default 500)' }),
  ),
})

const MeasureColumnSchema = Type.Object({
  scope: Type.String({ description: 'As in the `scope` parameter' }),
  name: oneOf(MEASURE_NAMES, {
    description: MEASURE_NAMES.map((name) => `${name}: ${MEASURES[name].meaning}`).join('. '),
  }),
  unit: oneOf(['percent', 'MiB', 'tasks', 'swaps', 'seconds']),
  values: list(Type.Unsafe<number | null>({ type: ['number', 'null'] }), {
    description: 'One value for each x; null: unknown',
  }),
})

const MarkSchema = Type.Object({
  kind: oneOf(['config_changed', 'swap_storm']),
  from: Type.Number({ description: 'Seconds since the Unix epoch' }),
  to: Type.Number({ description: 'Seconds since the Unix epoch; equal to from for an instant' }),
  text: Type.String({ description: 'Human-readable description' }),
})

export const SeriesSchema = Type.Object(
  {
    from: instant('Start of the first point; the requested range is extended to whole steps'),
    to: instant('End of the last point'),
    resolution_seconds: count('Resolution of the stored samples'),
    step_seconds: count('Duration of each point'),
    x: list(Type.Number(), {
      description: 'Start of each point, seconds since the Unix epoch; shared by all series',
    }),
    series: list(MeasureColumnSchema),
    marks: list(MarkSchema, {
      description:
        'Configuration changes and swap storms (periods with an unusually high swap rate in the cluster) ' +
        'in the time range; at most the latest 100 of each',
    }),
  },
  { description: 'Columns that share one x axis' },
)

export type SeriesQueryParameters = Static<typeof SeriesQuerySchema>
export type SeriesBody = Static<typeof SeriesSchema>
