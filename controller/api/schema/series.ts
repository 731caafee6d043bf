import { Type, type Static } from 'typebox'
import { MEASURE_NAMES, MEASURES } from '../../series/measures.ts'
import { MAX_POINTS } from '../limits.ts'
import { closed, count, instant, integer, list, oneOf, wordsOf } from './fields.ts'

const TEXT_LIMIT = 4_000

export const SeriesQuerySchema = closed({
  names: Type.Optional(
    wordsOf(
      MEASURE_NAMES,
      TEXT_LIMIT,
      'Which series, separated by commas (utilization_percent,starvation_percent)',
    ),
  ),
  scope: Type.Optional(
    Type.String({
      maxLength: TEXT_LIMIT,
      description:
        'Of what, separated by commas (cluster): `cluster`, `group:<id>`, `node:<node_id>`, `gpu:<node_id>/<index>`; a `*` for the id or the index means all',
    }),
  ),
  from: Type.Optional(
    Type.String({
      maxLength: 40,
      description: 'RFC 3339, or back from now: `-90s`, `-15m`, `-1h`, `-7d`, `-2w` (-1h)',
    }),
  ),
  to: Type.Optional(Type.String({ maxLength: 40, description: 'The same, or `now` (now)' })),
  max_points: Type.Optional(integer(1, MAX_POINTS, { description: 'No more than so many points (500)' })),
})

const MeasureColumnSchema = Type.Object({
  scope: Type.String({ description: 'As it would be asked for' }),
  name: oneOf(MEASURE_NAMES, {
    description: MEASURE_NAMES.map((name) => `${name}: ${MEASURES[name].meaning}`).join('. '),
  }),
  unit: oneOf(['percent', 'MiB', 'tasks', 'swaps']),
  values: list(Type.Unsafe<number | null>({ type: ['number', 'null'] }), {
    description: 'One for each of x; null: not known',
  }),
})

const MarkSchema = Type.Object({
  kind: oneOf(['config_changed', 'swap_storm']),
  from: Type.Number({ description: 'Seconds since the Unix epoch' }),
  to: Type.Number({ description: 'The same; equal to from for a moment' }),
  text: Type.String({ description: 'What happened, for people' }),
})

export const SeriesSchema = Type.Object(
  {
    from: instant('Where the first point begins: the range, widened to whole steps'),
    to: instant('Where the last one ends'),
    resolution_seconds: count('How fine what it is made of is kept'),
    step_seconds: count('How long a point is'),
    x: list(Type.Number(), {
      description: 'Where each point begins, seconds since the Unix epoch; one for all series',
    }),
    series: list(MeasureColumnSchema),
    marks: list(MarkSchema, {
      description:
        'Changes of the configuration and swap storms of the cluster in the range, the latest 100 of each',
    }),
  },
  { description: 'Columns on one x' },
)

export type SeriesQueryParameters = Static<typeof SeriesQuerySchema>
export type SeriesBody = Static<typeof SeriesSchema>
