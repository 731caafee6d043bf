/**
 * What the routes of simulations have in common: which scenario is meant, whose simulation it is, what a
 * refusal is answered with.
 */
import { mayCall } from '../../model/role.ts'
import type {
  Outcome,
  RunChoices,
  ScenarioReference,
  Simulation,
  SimulationRecord,
  SimulationRefusal,
  Uploader,
} from '../../ports/simulation.ts'
import { callerOf, type Caller } from '../auth/caller.ts'
import { ApiProblem, invalidField, invalidFields, notFoundDetail } from '../http/errors.ts'

/** The largest body of a route that takes a scenario: 1 MiB of text, as JSON writes it. */
export const SCENARIO_BODY_LIMIT_BYTES = 2 * 1024 * 1024

/** @throws ApiProblem where this controller has no simulator: inside a simulation. */
export function simulatorOf(simulation: Simulation | null): Simulation {
  if (simulation === null)
    throw new ApiProblem('conflict', 'This is a simulated cluster, which has no simulator of its own.')
  return simulation
}

export interface ScenarioChoice {
  readonly scenario?: string
  readonly scenario_text?: string
  readonly scenario_inline?: Readonly<Record<string, unknown>>
}

/** The schema requires exactly one of them. */
export function scenarioOf({
  scenario,
  scenario_text: text,
  scenario_inline: inline,
}: ScenarioChoice): ScenarioReference {
  if (scenario !== undefined) return { name: scenario }
  // Indented, so that lines and columns in problems mean something to who reads it.
  return { text: text ?? JSON.stringify(inline, null, 2) }
}

export interface ChoiceFields {
  readonly seed?: number
  readonly until_seconds?: number
  readonly overcommit_percent?: number
}

export function choicesOf({
  seed,
  until_seconds: untilSeconds,
  overcommit_percent: percent,
}: ChoiceFields): RunChoices {
  return {
    seed: seed ?? null,
    untilMs: untilSeconds === undefined ? null : untilSeconds * 1000,
    overcommitPercent: percent ?? null,
  }
}

/** @throws ApiProblem for a refusal. */
export function valueOf<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value
  throw problemOf(outcome.refusal)
}

export function noSimulation(id: string): ApiProblem {
  return problemOf({ code: 'not_found', what: 'simulation', id })
}

/**
 * Who asked for it, and operators, may change it.
 * @throws ApiProblem not_found, forbidden
 */
export function ownSimulation(
  simulation: Simulation,
  id: string,
  request: { readonly caller: Caller | null },
): SimulationRecord {
  const record = simulation.get(id)
  if (record === undefined) throw noSimulation(id)
  const { name, role } = callerOf(request)
  if (!mayCall(role, 'operator') && record.createdBy !== name) {
    throw new ApiProblem(
      'forbidden',
      'The simulation belongs to another user. Use a token with the role operator.',
    )
  }
  return record
}

/** Returns the caller as an owner of scenarios and traces. */
export function uploaderOf(request: { readonly caller: Caller | null }): Uploader {
  const { name, role } = callerOf(request)
  return { name, mayChangeOthers: mayCall(role, 'operator') }
}

function problemOf(refusal: SimulationRefusal): ApiProblem {
  switch (refusal.code) {
    case 'invalid_scenario':
      return invalidFields(
        refusal.problems.map(({ line, column, path, detail }) => ({
          pointer: '/scenario',
          detail:
            `line ${line}, column ${column} of the scenario: ` + `${path === '' ? '' : `${path}: `}${detail}`,
        })),
      )
    case 'invalid_fault':
      return invalidFields(
        refusal.problems.map(({ path, detail }) => ({
          pointer: '/fault',
          detail: `fault${path.replace(/^\[0\]/, '')}: ${detail}`,
        })),
      )
    case 'too_large':
      return invalidField('/scenario', refusal.detail)
    case 'not_found':
      return new ApiProblem('not_found', notFoundDetail(refusal.what, refusal.id))
    case 'body_too_large':
      return new ApiProblem(
        'body_too_large',
        `The body is larger than the limit of ${refusal.limitBytes} bytes.`,
      )
    case 'invalid':
      return invalidField(`/${refusal.field}`, refusal.detail)
    case 'conflict':
      return new ApiProblem('conflict', refusal.detail)
    case 'forbidden':
      return new ApiProblem('forbidden', refusal.detail)
    case 'uploads_full':
      return new ApiProblem('uploads_full', refusal.detail)
    case 'too_many':
      return new ApiProblem('too_many_simulations', refusal.detail, {
        headers: { 'retry-after': String(refusal.retryAfterSeconds) },
      })
  }
}
