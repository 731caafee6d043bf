/**
 * The table of a whole scenario file, the source of the checker's errors, the documentation and the JSON
 * Schema. Source: design "The simulator", section Scenario.
 */
import {
  checkConfig,
  CONFIG_RULES,
  type ConfigFields,
  DEFAULT_CONFIG,
  type FieldRule,
} from '../../controller/model/config.ts'
import { CONFIG_MEANINGS } from '../../controller/model/config-meanings.ts'
import { assertRule } from './assertions.ts'
import { jsonSchemaOf, type JsonSchema } from '../document/json-schema.ts'
import {
  boolean,
  choice,
  duration,
  type Field,
  instant,
  integer,
  integers,
  list,
  nullable,
  optional,
  optionalAbsent,
  record,
  required,
  type Rule,
  text,
  textLike,
  type ValueOf,
} from '../document/rule.ts'
import { faultsRule } from './schema-faults.ts'
import { fleetRule } from './schema-fleet.ts'
import { operatorRule } from './schema-operator.ts'
import { MAX_TIME_MS, workloadRule } from './schema-workload.ts'

const SCENARIO_VERSION = 1
/** 2026-01-01T00:00:00Z. */
const DEFAULT_START_MS = 1_767_225_600_000
const MAX_SEED = 4_294_967_295
/** The same limit as in the environment. */
const MAX_LIMIT = 1_000_000
const MAX_SWEPT_VALUES = 1000
const MAX_SWEPT_SEEDS = 10_000

// ── config ───────────────────────────────────────────────────────────────────

/** Converts a field of the controller's configuration table to a rule. */
function configValueRule(rule: FieldRule): Rule<number | string | null> {
  if (rule.kind === 'choice') return choice(...rule.choices)
  return rule.nullable ? nullable(integer(rule.min, rule.max)) : integer(rule.min, rule.max)
}

const configRule = record(
  mapFields((key, rule) =>
    optionalAbsent(configValueRule(rule), `${CONFIG_MEANINGS[key]}.`, DEFAULT_CONFIG[key]),
  ),
  {
    otherNames: {
      overcommit_vram_percent: 'default_vram_overcommit_percent',
      strategy: 'placement_strategy',
    },
    check: (config, refuse) => {
      for (const { field, detail } of checkConfig({ ...DEFAULT_CONFIG, ...config })) refuse(field, detail)
    },
  },
) as Rule<Partial<ConfigFields>>

function mapFields<F extends Field>(
  fieldOf: (key: keyof ConfigFields, rule: FieldRule) => F,
): Readonly<Record<string, F>> {
  const keys = Object.keys(CONFIG_RULES) as Array<keyof ConfigFields>
  return Object.fromEntries(keys.map((key) => [key, fieldOf(key, CONFIG_RULES[key])]))
}

// ── limits ───────────────────────────────────────────────────────────────────

const limitsRule = record(
  {
    placed_gpus_per_owner: optional(
      nullable(integer(1, MAX_LIMIT)),
      null,
      'Maximum number of GPUs of the placed tasks of one owner, counted once per task; other ' +
        'tasks wait. null: no limit.',
    ),
  },
  { otherNames: { max_placed_gpus: 'placed_gpus_per_owner', placed_gpus: 'placed_gpus_per_owner' } },
)

// ── sweep ────────────────────────────────────────────────────────────────────

function sweptValuesRule(rule: FieldRule): Rule<readonly (number | string | null)[]> {
  if (rule.kind === 'choice' || rule.nullable) return list(configValueRule(rule), 1, MAX_SWEPT_VALUES)
  return integers(rule.min, rule.max, MAX_SWEPT_VALUES)
}

const sweptFields: Record<string, Field<readonly (number | string | null)[] | undefined>> = {}
for (const [key, field] of Object.entries(
  mapFields((_, rule) => optionalAbsent(sweptValuesRule(rule), 'Values to try.')),
)) {
  sweptFields[`config.${key}`] = field
}

const sweepRule = record(
  {
    ...sweptFields,
    seeds: optional(
      nullable(integers(0, MAX_SEED, MAX_SWEPT_SEEDS)),
      null,
      'Seeds to try; null: the seed of the scenario.',
    ),
  },
  { otherNames: mapOtherNames() },
) as Rule<
  Readonly<Record<string, readonly (number | string | null)[]>> & { readonly seeds: readonly number[] | null }
>

/** Suggests `config.idle_swap_out_seconds` for `idle_swap_out_seconds`. */
function mapOtherNames(): Readonly<Record<string, string>> {
  return Object.fromEntries([
    ...Object.keys(CONFIG_RULES).map((key) => [key, `config.${key}`]),
    ['seed', 'seeds'],
  ])
}

// ── the file ─────────────────────────────────────────────────────────────────

const clockRule = record(
  {
    start: optional(instant, DEFAULT_START_MS, 'Time of the clock at the start.'),
    until: optional(
      nullable(duration(1, MAX_TIME_MS)),
      null,
      'No arrivals after this time; null: the end of the workload.',
    ),
    drain: optional(
      boolean,
      true,
      'Whether the run continues after until to the end of every task that can end.',
    ),
  },
  {
    otherNames: { end: 'until' },
    check: ({ until, drain }, refuse) => {
      if (until === null && !drain) refuse('drain', 'may be false only when until is set')
    },
  },
)

export const scenarioRule = record(
  {
    scenario: required(
      textLike(/^[a-z0-9][a-z0-9._-]*$/, 'a name of small letters, digits, dot, - and _', 128),
      'Name of the scenario.',
    ),
    description: optional(nullable(text(4096)), null, 'Description.'),
    version: required(choice(SCENARIO_VERSION), 'Version of the format.'),
    seed: optional(integer(0, MAX_SEED), 1, 'Seed of all random numbers.'),
    clock: optional(
      clockRule,
      { start: DEFAULT_START_MS, until: null, drain: true },
      'Start and end of the run.',
    ),
    fleet: required(fleetRule, 'The nodes.'),
    config: optional(configRule, {}, 'Initial live configuration; absent fields have their defaults.'),
    workload: optional(
      workloadRule,
      [],
      'Tasks to submit. Tasks at one instant follow the order of this list.',
    ),
    operator: optional(
      operatorRule,
      [],
      'Requests of an operator to the REST routes, in virtual time. In paths and in texts of a ' +
        'body or an expected answer, {node:NAME} is replaced by the ID of that node and ' +
        '{task:NAME} by the ID of a task that an earlier action named with `as`.',
    ),
    limits: optional(
      limitsRule,
      { placed_gpus_per_owner: null },
      'Limits per owner, as in the environment of a controller.',
    ),
    faults: optional(faultsRule, [], 'Faults.'),
    assert: optional(assertRule, { always: [], eventually: [], sometimes: [], final: [] }, 'Assertions.'),
    sweep: optional(nullable(sweepRule), null, 'Values that `sim sweep` tries.'),
  },
  {
    otherNames: {
      name: 'scenario',
      nodes: 'fleet',
      tasks: 'workload',
      asserts: 'assert',
      configuration: 'config',
    },
  },
)

export type ScenarioDocument = ValueOf<typeof scenarioRule>

/** The schema of a whole scenario file. */
export function scenarioJsonSchema(): JsonSchema {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `urn:headroom:scenario:${SCENARIO_VERSION}`,
    title: 'Headroom scenario',
    description:
      'A simulated experiment: fleet, configuration, workload, operator actions, faults and assertions.',
    ...jsonSchemaOf(scenarioRule),
  }
}
