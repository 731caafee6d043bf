import { Type, type Static } from 'typebox'
import { closed, count, list, numberOrNull, page, pathId, textOrNull } from '../http/fields-schema.ts'
import { MAX_SCENARIO_CHARACTERS, ONE_SCENARIO, scenarioFields } from './schema.ts'

const entry = {
  name: Type.String(),
  description: textOrNull('Description of what the scenario demonstrates'),
  purpose: textOrNull('Purpose; own: uploaded by a user'),
  too_large_because: textOrNull(
    'Why a full run or sweep is refused; null: allowed. A session, or a run with until_seconds, may ' +
      'still be possible',
  ),
  is_own: Type.Boolean({ description: 'true: the scenario is not bundled with Headroom and can be deleted' }),
  created_by: textOrNull('User who uploaded it; null: bundled with Headroom, or unknown'),
}

export const ScenarioEntryPageSchema = page(Type.Object(entry))
export type ScenarioEntryPage = Static<typeof ScenarioEntryPageSchema>
export const ScenarioSchema = Type.Object({ ...entry, text: Type.String({ description: 'YAML' }) })
export type ScenarioBody = Static<typeof ScenarioSchema>
export const ScenarioPathSchema = Type.Object({ scenario: pathId('Name of the scenario') })

const SMALL =
  'scenario: small\nversion: 1\nfleet: [{ name: a, gpus: 1, gpu: { model: A100-40, vram_mib: 40960 } ' +
  '}]\nworkload: [{ task: { id: t, at: 0s, vram_mib: 8000 } }]'

export const NewScenarioSchema = closed(
  {
    text: Type.String({
      minLength: 1,
      maxLength: MAX_SCENARIO_CHARACTERS,
      description: 'YAML or JSON; stored under the name given in the text',
    }),
  },
  { examples: [{ text: SMALL }] },
)

export const ScenarioCandidateSchema = closed(scenarioFields, {
  ...ONE_SCENARIO,
  examples: [{ scenario_text: SMALL }, { scenario: 'swap-fairness-basic' }],
})

const facts = {
  name: Type.String(),
  description: textOrNull('Description of what the scenario demonstrates'),
  sha256: Type.String({ description: 'SHA-256 of the text' }),
  nodes: count(),
  gpus: count(),
  expected_tasks: count('Estimated number of tasks, excluding tasks from traces'),
  until_seconds: numberOrNull(
    'Virtual time after which no task arrives; null: the run ends when its workload is complete',
  ),
  swept_fields: list(
    Type.Object({ field: Type.String({ description: '`config.idle_swap_out_seconds`' }), values: count() }),
    {
      description:
        'Fields that the sweep in the scenario varies besides the percentage, with the number of values; ' +
        'a sweep runs every combination unless the request sets the field',
    },
  ),
}
export const ScenarioFactsSchema = Type.Object(facts)
export type ScenarioFactsBody = Static<typeof ScenarioFactsSchema>
export type SweptFieldBody = ScenarioFactsBody['swept_fields'][number]

export const ValidationSchema = Type.Object({
  is_valid: Type.Boolean(),
  facts: Type.Unsafe<ScenarioFactsBody | null>({
    ...Type.Object(facts),
    type: ['object', 'null'],
    description: 'null: the scenario is invalid',
  }),
  problems: list(
    Type.Object({
      line: count('From 1'),
      column: count('From 1'),
      path: Type.String({ description: '`fleet[0].gpu.vram_mib`; empty: the whole text' }),
      detail: Type.String({ description: 'What is wrong, and what is allowed' }),
    }),
    { description: 'In text order; at most 20' },
  ),
})
export type ValidationBody = Static<typeof ValidationSchema>
