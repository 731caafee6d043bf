import { Type, type Static } from 'typebox'
import { RESIDENCY_KINDS, SIMULATION_KINDS, SIMULATION_STATES } from '../../ports/simulation.ts'
import {
  closed,
  count,
  exactlyOneOf,
  instant,
  instantOrNull,
  integer,
  list,
  numberOrNull,
  oneOf,
  page,
  pathId,
  refTo,
  textOrNull,
} from '../http/fields-schema.ts'
import { REPORT_FORMATS } from './report-format.ts'
import { MEDIA_TYPE, OTHER_MEDIA_TYPES } from '../http/service-schema.ts'
import { SPEED } from './session-schema.ts'

const MAX_SEED = 4_294_967_295
const MAX_UNTIL_SECONDS = 315_360_000
/** Maximum length of a scenario as text: 1 MiB. */
export const MAX_SCENARIO_CHARACTERS = 1_048_576

export const scenarioFields = {
  scenario: Type.Optional(
    Type.String({ minLength: 1, maxLength: 128, description: 'Name of a scenario from GET /scenarios' }),
  ),
  scenario_text: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_SCENARIO_CHARACTERS,
      description: 'Instead of `scenario`: a scenario as YAML or JSON text (docs/simulations.md)',
    }),
  ),
  scenario_inline: Type.Optional(
    Type.Unsafe<Readonly<Record<string, unknown>>>({
      type: 'object',
      additionalProperties: true,
      description: 'Instead of `scenario`: a scenario as an object',
    }),
  ),
}

/** Schema option of a body with these fields. */
export const ONE_SCENARIO = exactlyOneOf('scenario', 'scenario_text', 'scenario_inline')

const choiceFields = {
  seed: Type.Optional(integer(0, MAX_SEED, { description: 'Overrides the seed of the scenario' })),
  until_seconds: Type.Optional(
    integer(1, MAX_UNTIL_SECONDS, {
      description: 'Virtual time after which no task arrives; overrides the scenario',
    }),
  ),
  overcommit_percent: Type.Optional(
    integer(0, 1000, { description: 'Overrides default_vram_overcommit_percent of the scenario' }),
  ),
}

export const NewSimulationSchema = closed(
  {
    ...scenarioFields,
    ...choiceFields,
    mode: Type.Optional(
      oneOf(['run', 'session'], {
        default: 'run',
        description: 'run: runs to the end; session: interactive',
      }),
    ),
    speed: Type.Optional(SPEED),
    is_paused: Type.Optional(Type.Boolean({ default: true, description: 'Start the session paused' })),
  },
  {
    ...ONE_SCENARIO,
    examples: [
      { scenario: 'swap-fairness-basic', overcommit_percent: 40 },
      { scenario_text: exampleScenario(), seed: 7 },
      { scenario: 'thrash-guard', mode: 'session', speed: 60 },
    ],
  },
)

export type NewSimulationBody = Static<typeof NewSimulationSchema>

const MAX_SWEPT = 200
const MAX_SWEPT_FIELDS = 8
const MAX_OBJECTIVES = 8
/** Maximum lengths of a field path and of a text value. */
const MAX_FIELD_CHARACTERS = 200
const MAX_VALUE_CHARACTERS = 100
const MAX_SETTINGS_CHARACTERS = MAX_SWEPT_FIELDS * (MAX_FIELD_CHARACTERS + MAX_VALUE_CHARACTERS + 3)

/** No commas: reports list the values of several fields separated by commas. */
const SweptValueSchema = Type.Unsafe<number | string | boolean | null>({
  type: ['number', 'string', 'boolean', 'null'],
  maxLength: MAX_VALUE_CHARACTERS,
  pattern: '^[^,\\u0000-\\u001f\\u007f]*$',
  'x-allowed':
    'a number, true, false, null, ' +
    `or a string of at most ${MAX_VALUE_CHARACTERS} characters without commas`,
})

const SweptFieldsSchema = Type.Unsafe<
  Readonly<Record<string, readonly (number | string | boolean | null)[]>>
>({
  type: 'object',
  maxProperties: MAX_SWEPT_FIELDS,
  propertyNames: { type: 'string', minLength: 3, maxLength: MAX_FIELD_CHARACTERS },
  additionalProperties: Type.Array(SweptValueSchema, { minItems: 1, maxItems: MAX_SWEPT, uniqueItems: true }),
  description:
    'Other fields to sweep: maps the path of a field in `config`, `fleet`, `workload` or `clock` (for ' +
    'example, `fleet.0.count`) to the values to try. Maximum: 200 combinations.',
})

export const NewSweepSchema = closed(
  {
    ...scenarioFields,
    until_seconds: choiceFields.until_seconds,
    overcommit_percents: Type.Optional(
      Type.Array(integer(0, 1000), {
        minItems: 1,
        maxItems: MAX_SWEPT,
        uniqueItems: true,
        description:
          'Values of default_vram_overcommit_percent; default: those of the sweep in the scenario, or ' +
          'its single value if other fields are swept',
      }),
    ),
    seeds: Type.Optional(
      Type.Array(integer(0, MAX_SEED), {
        minItems: 1,
        maxItems: MAX_SWEPT,
        uniqueItems: true,
        description: 'Each percentage runs with each seed; default: the seeds of the scenario',
      }),
    ),
    fields: Type.Optional(SweptFieldsSchema),
    objectives: Type.Optional(
      Type.Array(Type.String({ maxLength: 100 }), {
        maxItems: MAX_OBJECTIVES,
        description:
          'Objectives that a recommended percentage must meet at the 95th percentile of seeds ' +
          '(starvation.total<=20)',
      }),
    ),
  },
  {
    ...ONE_SCENARIO,
    examples: [
      {
        scenario: 'thrash-guard',
        overcommit_percents: [0, 50],
        seeds: [1, 2],
        objectives: ['starvation.total<=20'],
      },
      {
        scenario: 'thrash-guard',
        overcommit_percents: [0, 50],
        fields: { 'config.idle_swap_out_seconds': [60, 300] },
      },
    ],
  },
)

export type NewSweepBody = Static<typeof NewSweepSchema>

function exampleScenario(): string {
  return [
    'scenario: example',
    'version: 1',
    'clock: { until: 2h }',
    'fleet: [{ name: "a100-{i}", count: 2, gpus: 4, gpu: { model: A100-40, vram_mib: 40960 } }]',
    'workload: [{ generate: poisson, rate_per_hour: 60, vram_mib: 16000, duration: { exponential: { ' +
      'mean: 20m } } }]',
  ].join('\n')
}

export const SimulationSchema = Type.Object(
  {
    id: Type.String(),
    kind: oneOf(SIMULATION_KINDS),
    state: oneOf(SIMULATION_STATES),
    scenario: Type.String({ description: 'Name of the scenario' }),
    scenario_sha256: Type.String({ description: 'SHA-256 of the text' }),
    exercise: textOrNull('Name of the exercise, if the session is an exercise'),
    seed: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      description: 'null: the value of the scenario',
    }),
    until_seconds: Type.Unsafe<number | null>({
      type: ['number', 'null'],
      description: 'null: the value of the scenario',
    }),
    overcommit_percent: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      description: 'null: the value of the scenario',
    }),
    progress: Type.Number({ description: '0 to 1' }),
    reason: textOrNull('Why the simulation failed or was cancelled'),
    created_by: textOrNull('Name of the caller that created the simulation'),
    created_at: instant('Time of creation'),
    started_at: instantOrNull('Start of the run'),
    ended_at: instantOrNull('Time of completion, failure or cancellation'),
  },
  {
    $id: 'Simulation',
    description: 'A run, a sweep or an interactive session: its parameters, state and progress.',
  },
)
export type SimulationBody = Static<typeof SimulationSchema>
export const SimulationRef = refTo<SimulationBody>('Simulation')
export const SimulationPageSchema = page(SimulationRef)
export type SimulationPage = Static<typeof SimulationPageSchema>
export const SimulationPathSchema = Type.Object({ simulation_id: pathId('ID of the simulation') })

export const SimulationReportSchema = Type.Unsafe<object>({
  type: 'object',
  additionalProperties: true,
  description:
    'Run: digest, seed, version, virtual_s and metrics as in `headroom sim run --json`, and timing. ' +
    'Sweep: result.json, runs.csv or report.html of `headroom sim sweep --out`. Exercise: its debrief. ' +
    'See docs/simulations.md',
  [OTHER_MEDIA_TYPES]: ['text/csv', 'text/html'],
})

export const ReportQuerySchema = closed({
  format: Type.Optional(
    oneOf(REPORT_FORMATS, {
      description: 'Format of a sweep report; default: the format in Accept, otherwise JSON',
    }),
  ),
})

export const SimulationSeriesSchema = Type.Object({
  x: list(Type.Number(), { description: 'End of each interval, in virtual seconds since the start' }),
  series: list(Type.Object({ name: Type.String(), values: list(Type.Number()) })),
})
export type SimulationSeriesBody = Static<typeof SimulationSeriesSchema>

/** Percentage and seed are required for a run of a sweep, and not allowed for a single run. */
export const SweptRunQuerySchema = closed({
  overcommit_percent: Type.Optional(
    integer(0, 1000, { description: 'For a sweep: overcommit percentage of the run' }),
  ),
  seed: Type.Optional(integer(0, MAX_SEED, { description: 'For a sweep: seed of the run' })),
  settings: Type.Optional(
    Type.String({
      maxLength: MAX_SETTINGS_CHARACTERS,
      description:
        'For a sweep of fields other than the overcommit percentage: their values in the run ' +
        '(`fleet.0.count=2, ' +
        'config.idle_swap_out_seconds=60`)',
    }),
  ),
})

export const RunResidencySchema = Type.Object({
  gpus: list(Type.String(), {
    description: 'Names of the listed GPUs, `node / index`, in scenario order; at most 32',
  }),
  gpu_count: count('Total number of GPUs'),
  ends_seconds: Type.Number({ description: 'End of the run, virtual seconds since its start' }),
  cut_at_seconds: numberOrNull(
    'Bars after this time are omitted, because the limit is 4,000; null: complete',
  ),
  tasks: list(Type.String(), { description: 'Task names' }),
  bars: Type.Object(
    {
      gpu: list(count(), { description: 'Index in gpus' }),
      task: list(count(), { description: 'Index in tasks' }),
      kind: list(oneOf(RESIDENCY_KINDS), {
        description: 'moving: starting, or being swapped in or out; out: in host memory',
      }),
      from_seconds: list(Type.Number(), { description: 'Virtual seconds since the start' }),
      to_seconds: list(Type.Number()),
    },
    { description: 'Columns: one entry for each bar' },
  ),
})
export type RunResidencyBody = Static<typeof RunResidencySchema>

export const SimulationStreamSchema = Type.String({
  [MEDIA_TYPE]: 'text/event-stream',
  description:
    '`simulation` events with a Simulation as data, sent immediately and on each change; `end` when the ' +
    'simulation is done, failed, cancelled or deleted. A comment is sent every 15 s',
})
