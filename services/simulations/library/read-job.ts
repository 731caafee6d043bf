/**
 * Requests and answers of the process that reads scenarios. The controller's process never reads uploaded
 * text.
 */
import { readFileSync } from 'node:fs'
import type { DurationMs } from '../../../protocol/units.ts'
import type { LibraryEntry, ScenarioFacts, ScenarioProblem } from '../../../controller/ports/simulation.ts'
import { loadScenario, type ScenarioSource } from '../../../simulator/scenario/load.ts'
import { ScenarioError } from '../../../simulator/document/problem.ts'
import type { SweepRequest } from '../../../simulator/experiment/sweep/sweep-grid.ts'
import { readSweep, type SweepReadResult } from './read-sweep.ts'
import { factsOf, whyTooLarge } from './scenario-facts.ts'

export type FoundScenario = Omit<LibraryEntry, 'isOwn' | 'createdBy'> & { readonly file: string }

export type ReadJob =
  /** `withinMs`: later tasks are not counted; null: all are. */
  | { readonly kind: 'scenario'; readonly source: ScenarioSource; readonly withinMs: DurationMs | null }
  | {
      readonly kind: 'sweep'
      readonly source: ScenarioSource
      readonly sweepRequest: SweepRequest
      readonly withinMs: DurationMs | null
    }
  | {
      readonly kind: 'library'
      readonly files: ReadonlyArray<{ readonly file: string; readonly purpose: string | null }>
    }

export type ReadAnswer =
  | { readonly kind: 'facts'; readonly facts: ScenarioFacts; readonly text: string }
  | SweepReadResult
  | { readonly kind: 'problems'; readonly problems: readonly ScenarioProblem[] }
  | { readonly kind: 'library'; readonly entries: readonly FoundScenario[] }

export async function runReadJob(job: ReadJob): Promise<ReadAnswer> {
  if (job.kind === 'library') return { kind: 'library', entries: entriesOf(job.files) }
  try {
    return job.kind === 'scenario'
      ? readScenario(job.source, job.withinMs)
      : readSweep(job.source, job.sweepRequest, job.withinMs)
  } catch (error) {
    if (!(error instanceof ScenarioError)) throw error
    return { kind: 'problems', problems: error.problems }
  }
}

function readScenario(source: ScenarioSource, withinMs: DurationMs | null): ReadAnswer {
  const loaded = loadScenario(source)
  const facts = factsOf(loaded, withinMs)
  const detail = whyTooLarge(facts)
  return detail === null ? { kind: 'facts', facts, text: loaded.text } : { kind: 'too_large', detail }
}

/** For a file that is no longer a valid scenario only its name is returned. */
function entriesOf(files: Extract<ReadJob, { kind: 'library' }>['files']): readonly FoundScenario[] {
  return files.map(({ file, purpose }) => ({ ...described(file), purpose, file }))
}

function described(file: string): Pick<LibraryEntry, 'name' | 'description' | 'tooLargeBecause'> {
  const text = readFileSync(file, 'utf8')
  const name =
    /^scenario:[ \t]*["']?([a-z0-9][a-z0-9._-]*)/m.exec(text)?.[1] ??
    file.replace(/^.*\//, '').replace(/\.scenario\.ya?ml$/, '')
  try {
    const loaded = loadScenario(file)
    const { scenario } = loaded
    return {
      name: scenario.name,
      description: scenario.description,
      tooLargeBecause: whyTooLarge(factsOf(loaded)),
    }
  } catch (error) {
    if (error instanceof ScenarioError) return { name, description: null, tooLargeBecause: null }
    throw error
  }
}
