/** What somebody sent or named, read and found right before anything is done with it. */
import type { Outcome, ScenarioFacts, ScenarioReference, SimulationRefusal } from '../../controller/ports/simulation.ts'
import type { ScenarioSource } from '../../simulator/scenario/load.ts'
import { WorkerFault } from '../worker-process.ts'
import type { ScenarioLibrary } from './library.ts'
import type { ScenarioReader } from './scenario-reader.ts'

export interface Found {
  /** What a process that runs it is given. */
  readonly source: ScenarioSource
  readonly facts: ScenarioFacts
  readonly text: string
}

export type ScenarioGate = (scenario: ScenarioReference) => Promise<Outcome<Found>>

const BUSY = { code: 'too_many', detail: 'Too many scenarios are being read.', retryAfterSeconds: 2 } as const

export function scenarioGate(library: ScenarioLibrary, reader: ScenarioReader): ScenarioGate {
  return async (scenario) => {
    const source = await library.sourceOf(scenario)
    if (source === undefined) return refused({ code: 'not_found', what: 'scenario', id: 'name' in scenario ? scenario.name : '' })
    const answering = reader.read({ kind: 'scenario', source })
    if (answering === null) return refused(BUSY)
    try {
      const answer = await answering
      if (answer.kind === 'problems') return refused({ code: 'invalid_scenario', problems: answer.problems })
      if (answer.kind === 'too_large') return refused({ code: 'too_large', detail: answer.detail })
      if (answer.kind === 'library') throw new Error('the reader answered something else')
      return { ok: true, value: { source, facts: answer.facts, text: answer.text } }
    } catch (error) {
      if (error instanceof WorkerFault) return refused({ code: 'too_large', detail: `The scenario was not read: ${error.message}.` })
      throw error
    }
  }
}

export function refused(refusal: SimulationRefusal): { readonly ok: false; readonly refusal: SimulationRefusal } {
  return { ok: false, refusal }
}
