/** The library of scenarios: bundled and uploaded ones. */
import { Type } from 'typebox'
import type { ApiApp, ApiContext } from '../context.ts'
import type { LibraryEntry } from '../../ports/simulation.ts'
import { ApiProblem } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { presentFacts } from './present.ts'
import {
  NewScenarioSchema,
  ScenarioCandidateSchema,
  ScenarioEntryPageSchema,
  ScenarioFactsSchema,
  ScenarioPathSchema,
  ScenarioSchema,
  ValidationSchema,
} from './scenario-schema.ts'
import {
  SCENARIO_BODY_LIMIT_BYTES,
  scenarioOf,
  simulatorOf,
  uploaderOf,
  valueOf,
} from './simulation-request.ts'

const listScenarios = operation(
  {
    operationId: 'listScenarios',
    role: 'viewer',
    summary: 'Scenarios that can be run by name, sorted by name',
    description: 'Bundled scenarios and those uploaded with `POST /scenarios`.',
    tags: ['simulations'],
    response: { 200: ScenarioEntryPageSchema },
  },
  ['conflict', 'store_failed'],
)

const getScenario = operation(
  {
    operationId: 'getScenario',
    role: 'viewer',
    summary: 'Get a scenario, including its text',
    description: 'The original text, with a summary of its fleet and workload.',
    tags: ['simulations'],
    params: ScenarioPathSchema,
    response: { 200: ScenarioSchema },
  },
  ['not_found', 'conflict', 'store_failed'],
)

const storeScenario = operation(
  {
    operationId: 'storeScenario',
    role: 'submitter',
    answerHeaders: ['Location'],
    summary: 'Store a scenario under its name',
    description: 'Replaces your own scenario with the same name, but not a bundled one.',
    tags: ['simulations'],
    body: NewScenarioSchema,
    response: { 201: ScenarioFactsSchema },
  },
  ['conflict', 'forbidden', 'too_many_simulations', 'uploads_full', 'store_failed'],
)

const deleteScenario = operation(
  {
    operationId: 'deleteScenario',
    role: 'submitter',
    summary: 'Delete an uploaded scenario',
    description:
      'A submitter can delete their own scenarios; an operator can delete all uploaded scenarios. ' +
      'Bundled scenarios cannot be deleted. Simulations that used the scenario keep their results.',
    tags: ['simulations'],
    params: ScenarioPathSchema,
    response: { 204: Type.Null({ description: 'Deleted' }) },
  },
  ['not_found', 'forbidden', 'conflict', 'store_failed'],
)

const validateScenario = operation(
  {
    operationId: 'validateScenario',
    role: 'viewer',
    summary: 'Validate a scenario and list its problems',
    description: 'Nothing is stored or run.',
    tags: ['simulations'],
    body: ScenarioCandidateSchema,
    response: { 200: ValidationSchema },
  },
  ['not_found', 'conflict', 'too_many_simulations', 'store_failed'],
)

/** GET and POST /scenarios; GET and DELETE /scenarios/{scenario}; POST /scenarios/validate. */
export function scenarioRoutes(app: ApiApp, { simulation }: ApiContext): void {
  const simulator = () => simulatorOf(simulation)

  app.get('/scenarios', { schema: listScenarios }, async () => {
    const items = (await simulator().scenarios()).map(presentEntry)
    return { items, next_cursor: null, total: items.length }
  })

  app.post(
    '/scenarios',
    { schema: storeScenario, bodyLimit: SCENARIO_BODY_LIMIT_BYTES },
    async (request, reply) => {
      const facts = valueOf(await simulator().putScenario(request.body.text, uploaderOf(request)))
      reply.code(201).header('location', `/api/v1/scenarios/${facts.name}`)
      return presentFacts(facts)
    },
  )

  app.post(
    '/scenarios/validate',
    { schema: validateScenario, bodyLimit: SCENARIO_BODY_LIMIT_BYTES },
    async ({ body }) => {
      const outcome = await simulator().validate(scenarioOf(body))
      if (outcome.ok) return { is_valid: true, facts: presentFacts(outcome.value), problems: [] }
      const { refusal } = outcome
      if (refusal.code === 'invalid_scenario')
        return { is_valid: false, facts: null, problems: refusal.problems }
      if (refusal.code === 'too_large') {
        return {
          is_valid: false,
          facts: null,
          problems: [{ line: 1, column: 1, path: '', detail: refusal.detail }],
        }
      }
      return valueOf(outcome)
    },
  )

  app.get('/scenarios/:scenario', { schema: getScenario }, async ({ params }) => {
    const found = await simulator().scenario(params.scenario)
    if (found === undefined) throw noScenario(params.scenario)
    return presentEntry(found)
  })

  app.delete('/scenarios/:scenario', { schema: deleteScenario }, async (request, reply) => {
    const { scenario } = request.params
    if (!valueOf(await simulator().removeScenario(scenario, uploaderOf(request)))) throw noScenario(scenario)
    return reply.code(204).send(null)
  })
}

function presentEntry<T extends LibraryEntry>({ isOwn, createdBy, tooLargeBecause, ...entry }: T) {
  return { ...entry, too_large_because: tooLargeBecause, is_own: isOwn, created_by: createdBy }
}

function noScenario(name: string): ApiProblem {
  return new ApiProblem('not_found', `Scenario ${JSON.stringify(name)} not found.`)
}
