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
} from './fields.ts'
import { REPORT_FORMATS } from '../report-format.ts'
import { MEDIA_TYPE, OTHER_MEDIA_TYPES } from './service.ts'
import { SPEED } from './session.ts'

export const MAX_SEED = 4_294_967_295
const MAX_UNTIL_SECONDS = 315_360_000
/** Of a scenario as text: 1 MiB. */
export const MAX_SCENARIO_CHARACTERS = 1_048_576

export const scenarioFields = {
  scenario: Type.Optional(
    Type.String({ minLength: 1, maxLength: 128, description: 'Name of one of GET /scenarios' }),
  ),
  scenario_text: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: MAX_SCENARIO_CHARACTERS,
      description: 'Or a scenario as YAML or JSON text (docs/simulations.md)',
    }),
  ),
  scenario_inline: Type.Optional(
    Type.Unsafe<Readonly<Record<string, unknown>>>({
      type: 'object',
      additionalProperties: true,
      description: 'Or a scenario as an object',
    }),
  ),
}

/** Of a body with these fields. */
export const ONE_SCENARIO = exactlyOneOf('scenario', 'scenario_text', 'scenario_inline')

export const choiceFields = {
  seed: Type.Optional(integer(0, MAX_SEED, { description: "In place of the scenario's own" })),
  until_seconds: Type.Optional(
    integer(1, MAX_UNTIL_SECONDS, {
      description: "No arrival after so much virtual time, in place of the scenario's own",
    }),
  ),
  overcommit_percent: Type.Optional(
    integer(0, 1000, { description: 'In place of default_vram_overcommit_percent of its configuration' }),
  ),
}

export const NewSimulationSchema = closed(
  {
    ...scenarioFields,
    ...choiceFields,
    mode: Type.Optional(
      oneOf(['run', 'session'], { default: 'run', description: 'run: to its end. session: driven by hand' }),
    ),
    speed: Type.Optional(SPEED),
    is_paused: Type.Optional(Type.Boolean({ default: true, description: 'A session begins standing still' })),
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
/** Of a path, and of a value that is text. */
const MAX_FIELD_CHARACTERS = 200
const MAX_VALUE_CHARACTERS = 100
const MAX_SETTINGS_CHARACTERS = MAX_SWEPT_FIELDS * (MAX_FIELD_CHARACTERS + MAX_VALUE_CHARACTERS + 3)

/** No comma: the values of several fields stand beside each other in reports. */
const SweptValueSchema = Type.Unsafe<number | string | boolean | null>({
  type: ['number', 'string', 'boolean', 'null'],
  maxLength: MAX_VALUE_CHARACTERS,
  pattern: '^[^,\\u0000-\\u001f\\u007f]*$',
  'x-allowed': `a number, true, false, null, or a text of at most ${MAX_VALUE_CHARACTERS} characters without commas`,
})

const SweptFieldsSchema = Type.Unsafe<
  Readonly<Record<string, readonly (number | string | boolean | null)[]>>
>({
  type: 'object',
  maxProperties: MAX_SWEPT_FIELDS,
  propertyNames: { type: 'string', minLength: 3, maxLength: MAX_FIELD_CHARACTERS },
  additionalProperties: Type.Array(SweptValueSchema, { minItems: 1, maxItems: MAX_SWEPT, uniqueItems: true }),
  description:
    'Other fields of the scenario, each by its path below config, fleet, workload or clock (`fleet.0.count`), and the values tried. At most 200 combinations',
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
          "The default_vram_overcommit_percent of each run; left out: those of the scenario's sweep, or its own where other fields are swept",
      }),
    ),
    seeds: Type.Optional(
      Type.Array(integer(0, MAX_SEED), {
        minItems: 1,
        maxItems: MAX_SWEPT,
        uniqueItems: true,
        description: "Each percentage is run with each; left out: those of the scenario's sweep, or its own",
      }),
    ),
    fields: Type.Optional(SweptFieldsSchema),
    objectives: Type.Optional(
      Type.Array(Type.String({ maxLength: 100 }), {
        maxItems: MAX_OBJECTIVES,
        description:
          'What a percentage has to keep in 95 of 100 seeds to be recommended (starvation.total<=20)',
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
    'workload: [{ generate: poisson, rate_per_hour: 60, vram_mib: 16000, duration: { exponential: { mean: 20m } } }]',
  ].join('\n')
}

export const SimulationSchema = Type.Object(
  {
    id: Type.String(),
    kind: oneOf(SIMULATION_KINDS),
    state: oneOf(SIMULATION_STATES),
    scenario: Type.String({ description: 'Name of the scenario' }),
    scenario_sha256: Type.String({ description: 'Of its text' }),
    exercise: textOrNull('Name of the exercise that a session is'),
    seed: Type.Unsafe<number | null>({ type: ['integer', 'null'], description: "null: the scenario's own" }),
    until_seconds: Type.Unsafe<number | null>({
      type: ['number', 'null'],
      description: "null: the scenario's own",
    }),
    overcommit_percent: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      description: "null: the scenario's own",
    }),
    progress: Type.Number({ description: '0 to 1' }),
    reason: textOrNull('Why it failed or was cancelled'),
    created_by: textOrNull('Name of who asked for it'),
    created_at: instant('When it was asked for'),
    started_at: instantOrNull('When it began to run'),
    ended_at: instantOrNull('When it was done, failed or cancelled'),
  },
  {
    $id: 'Simulation',
    description: 'A run, a sweep or an interactive session: what was asked for, its state and its progress.',
  },
)
export type SimulationBody = Static<typeof SimulationSchema>
export const SimulationRef = refTo<SimulationBody>('Simulation')
export const SimulationPageSchema = page(SimulationRef)
export type SimulationPage = Static<typeof SimulationPageSchema>
export const SimulationPathSchema = Type.Object({ simulation_id: pathId('Id of the simulation') })

export const SimulationReportSchema = Type.Unsafe<object>({
  type: 'object',
  additionalProperties: true,
  description:
    'Of a run: digest, seed, version, virtual_s and metrics as `headroom sim run --json` has them, and timing. Of a sweep: result.json, runs.csv or report.html of `headroom sim sweep --out`. Of an exercise: its debrief. docs/simulations.md',
  [OTHER_MEDIA_TYPES]: ['text/csv', 'text/html'],
})

export const ReportQuerySchema = closed({
  format: Type.Optional(
    oneOf(REPORT_FORMATS, { description: 'Of a sweep; left out: as Accept has it, else JSON' }),
  ),
})

export const SimulationSeriesSchema = Type.Object({
  x: list(Type.Number(), { description: 'The end of each interval, virtual seconds since the start' }),
  series: list(Type.Object({ name: Type.String(), values: list(Type.Number()) })),
})
export type SimulationSeriesBody = Static<typeof SimulationSeriesSchema>

/** Of a run of a sweep both are needed; of a run none. */
export const SweptRunQuerySchema = closed({
  overcommit_percent: Type.Optional(
    integer(0, 1000, { description: 'Of a sweep: the percentage of the run' }),
  ),
  seed: Type.Optional(integer(0, MAX_SEED, { description: 'Of a sweep: the seed of the run' })),
  settings: Type.Optional(
    Type.String({
      maxLength: MAX_SETTINGS_CHARACTERS,
      description:
        'Of a sweep of other fields: those of the run (`fleet.0.count=2, config.idle_swap_out_seconds=60`)',
    }),
  ),
})

export const RunResidencySchema = Type.Object({
  gpus: list(Type.String(), {
    description: 'Names of the GPUs that are shown, `node / index`, in the order of the scenario; at most 32',
  }),
  gpu_count: count('How many GPUs there are in all'),
  ends_seconds: Type.Number({ description: 'When the run ended, virtual seconds since its start' }),
  cut_at_seconds: numberOrNull(
    'From then on bars are left out, because there were more than 4,000; null: they are all there',
  ),
  tasks: list(Type.String(), { description: 'Names' }),
  bars: Type.Object(
    {
      gpu: list(count(), { description: 'Index in gpus' }),
      task: list(count(), { description: 'Index in tasks' }),
      kind: list(oneOf(RESIDENCY_KINDS), {
        description: 'moving: it starts, or is swapped in or out; out: its bytes are in host memory',
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
    '`simulation` events: data is a Simulation, at once and then as it changes; `end` once it is done, failed, cancelled or gone. A comment every 15 s',
})
