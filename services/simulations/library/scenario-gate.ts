/** Reads and checks an uploaded or named scenario before it is used. */
import type { DurationMs } from '../../../protocol/units.ts'
import type { Outcome, ScenarioFacts, ScenarioReference } from '../../../controller/ports/simulation.ts'
import type { ScenarioSource } from '../../../simulator/scenario/load.ts'
import type { SweepGrid, SweepRequest } from '../../../simulator/experiment/sweep/sweep-grid.ts'
import { WorkerFault } from '../../workers/worker-process.ts'
import type { ScenarioLibrary } from './library.ts'
import type { ReadAnswer, ReadJob } from './read-job.ts'
import { refused } from './limits.ts'
import type { ScenarioReader } from './scenario-reader.ts'

export interface Found {
  /** Input of a process that runs it. */
  readonly source: ScenarioSource
  readonly facts: ScenarioFacts
  readonly text: string
}

export interface FoundSweep extends Omit<Found, 'text'> {
  readonly grid: SweepGrid
}

export interface ScenarioGate {
  /** @param withinMs later tasks do not count towards the limit; null: all do */
  readonly scenario: (scenario: ScenarioReference, withinMs: DurationMs | null) => Promise<Outcome<Found>>
  /** Also checks every combination of swept values. */
  readonly sweep: (
    scenario: ScenarioReference,
    sweepRequest: SweepRequest,
    withinMs: DurationMs | null,
  ) => Promise<Outcome<FoundSweep>>
}

const BUSY = {
  code: 'too_many',
  detail: 'Too many scenarios are being read. Try again later.',
  retryAfterSeconds: 2,
} as const

export function scenarioGate(library: ScenarioLibrary, reader: ScenarioReader): ScenarioGate {
  const read = async <T>(
    scenario: ScenarioReference,
    jobOf: (source: ScenarioSource) => ReadJob,
    found: (answer: ReadAnswer, source: ScenarioSource) => T | null,
  ): Promise<Outcome<T>> => {
    const source = await library.sourceOf(scenario)
    if (source === undefined)
      return refused({ code: 'not_found', what: 'scenario', id: 'name' in scenario ? scenario.name : '' })
    const answering = reader.read(jobOf(source))
    if (answering === null) return refused(BUSY)
    try {
      const answer = await answering
      if (answer.kind === 'problems') return refused({ code: 'invalid_scenario', problems: answer.problems })
      if (answer.kind === 'too_large') return refused({ code: 'too_large', detail: answer.detail })
      if (answer.kind === 'invalid')
        return refused({ code: 'invalid', field: answer.field, detail: answer.detail })
      const value = found(answer, source)
      if (value === null) throw new Error('the reader sent an unexpected answer')
      return { ok: true, value }
    } catch (error) {
      if (error instanceof WorkerFault)
        return refused({ code: 'too_large', detail: `The scenario could not be read: ${error.message}.` })
      throw error
    }
  }
  return {
    scenario: (scenario, withinMs) =>
      read(
        scenario,
        (source) => ({ kind: 'scenario', source, withinMs }),
        (answer, source) =>
          answer.kind === 'facts' ? { source, facts: answer.facts, text: answer.text } : null,
      ),
    sweep: (scenario, sweepRequest, withinMs) =>
      read(
        scenario,
        (source) => ({ kind: 'sweep', source, sweepRequest, withinMs }),
        (answer, source) =>
          answer.kind === 'sweep' ? { source, facts: answer.facts, grid: answer.grid } : null,
      ),
  }
}
