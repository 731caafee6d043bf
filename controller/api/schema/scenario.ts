import { Type, type Static } from 'typebox'
import { closed, count, list, numberOrNull, page, pathId, textOrNull } from './fields.ts'
import { MAX_SCENARIO_CHARACTERS, ONE_SCENARIO, scenarioFields } from './simulation.ts'

const entry = {
  name: Type.String(),
  description: textOrNull('What it shows'),
  purpose: textOrNull('What it is for; own: somebody stored it here'),
  too_large_because: textOrNull(
    'Why a run or sweep of it to its end is refused; null: it may be run. A session, or a run with until_seconds, may be possible',
  ),
  is_own: Type.Boolean({ description: 'It did not come with Headroom and may be deleted' }),
  created_by: textOrNull('Who stored it; null: it came with Headroom, or this is not known'),
}

export const ScenarioEntryPageSchema = page(Type.Object(entry))
export type ScenarioEntryPage = Static<typeof ScenarioEntryPageSchema>
export const ScenarioSchema = Type.Object({ ...entry, text: Type.String({ description: 'YAML' }) })
export type ScenarioBody = Static<typeof ScenarioSchema>
export const ScenarioPathSchema = Type.Object({ scenario: pathId('Name of the scenario') })

const SMALL =
  'scenario: small\nversion: 1\nfleet: [{ name: a, gpus: 1, gpu: { model: A100-40, vram_mib: 40960 } }]\nworkload: [{ task: { id: t, at: 0s, vram_mib: 8000 } }]'

export const NewScenarioSchema = closed(
  {
    text: Type.String({
      minLength: 1,
      maxLength: MAX_SCENARIO_CHARACTERS,
      description: 'YAML or JSON; it is stored under the name that it gives itself',
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
  description: textOrNull('What it shows'),
  sha256: Type.String({ description: 'Of its text' }),
  nodes: count(),
  gpus: count(),
  expected_tasks: count('About; those of traces are not counted'),
  until_seconds: numberOrNull('null: the run ends with its workload'),
  swept_fields: list(
    Type.Object({ field: Type.String({ description: '`config.idle_swap_out_seconds`' }), values: count() }),
    {
      description:
        'What its own sweep varies beside the percentage, and at how many values: a sweep makes every combination, unless it names the field itself',
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
    description: 'null: it is not right',
  }),
  problems: list(
    Type.Object({
      line: count('From 1'),
      column: count('From 1'),
      path: Type.String({ description: '`fleet[0].gpu.vram_mib`; empty: the text as a whole' }),
      detail: Type.String({ description: 'What is wrong, and what would be right' }),
    }),
    { description: 'In the order of the text, 20 at most' },
  ),
})
export type ValidationBody = Static<typeof ValidationSchema>
