/**
 * Requests and answers of the process that reads scenarios. The controller's process never reads uploaded
 * text.
 */
import { readFileSync } from 'node:fs'
import type { LibraryEntry, ScenarioFacts, ScenarioProblem } from '../../../controller/ports/simulation.ts'
import type { DurationMs } from '../../../protocol/units.ts'
import { overrideFieldProblem } from '../../../simulator/document/override.ts'
import { ScenarioError } from '../../../simulator/document/problem.ts'
import {
  sweepGrid,
  type GridRefusal,
  type SweepGrid,
  type SweepRequest,
} from '../../../simulator/experiment/sweep/sweep-grid.ts'
import {
  overridesOf,
  settingsOf,
  settingsText,
  sweepSize,
  type Settings,
} from '../../../simulator/experiment/sweep/sweep.ts'
import { loadScenario, type ScenarioSource } from '../../../simulator/scenario/load.ts'
import { LIMITS } from './limits.ts'
import { factsOf, whyTooLarge } from './scenario-facts.ts'

type FoundScenario = Omit<LibraryEntry, 'isOwn' | 'createdBy'> & { readonly file: string }

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

/**
 * Checks a sweep requested over REST before it is queued: its runs, and that each scenario is valid and
 * within the limits.
 */

type SweepReadResult =
  | { readonly kind: 'sweep'; readonly facts: ScenarioFacts; readonly grid: SweepGrid }
  | { readonly kind: 'too_large'; readonly detail: string }
  /** Equals the case in SimulationRefusal. */
  | { readonly kind: 'invalid'; readonly field: string; readonly detail: string }

/** Throws ScenarioError for an invalid scenario. */
function readSweep(
  source: ScenarioSource,
  sweepRequest: SweepRequest,
  withinMs: DurationMs | null,
): SweepReadResult {
  const loaded = loadScenario(source)
  const facts = factsOf(loaded, withinMs)
  const tooLarge = whyTooLarge(facts)
  if (tooLarge !== null) return { kind: 'too_large', detail: tooLarge }
  const outcome = sweepGrid(loaded.scenario, sweepRequest, LIMITS.sweptRuns)
  if (!outcome.ok) return bodyProblem(outcome.refusal)
  return sweepRefusal(source, outcome.grid, withinMs) ?? { kind: 'sweep', facts, grid: outcome.grid }
}

type Refused = Extract<SweepReadResult, { readonly kind: 'invalid' }>

function bodyProblem(refusal: GridRefusal): Refused {
  switch (refusal.kind) {
    case 'percentage_as_field':
    case 'field_twice':
      return refusedAt(['fields', refusal.field], `${refusal.field} is swept with overcommit_percents`)
    case 'no_percentages':
      return refusedAt(
        ['overcommit_percents'],
        'overcommit_percents is required: the scenario has no sweep, and no other field is swept',
      )
    case 'too_many_runs':
      return refusedAt(
        ['seeds'],
        `overcommit_percents, seeds and fields result in ${refusal.runs} runs; the limit is ${refusal.max}`,
      )
  }
}

/** Null: every combination of the other fields is a valid scenario within the limits. */
function sweepRefusal(
  source: ScenarioSource,
  { axes }: SweepGrid,
  withinMs: DurationMs | null,
): Refused | null {
  for (const { field, values } of axes) {
    const problem = overrideFieldProblem(field)
    if (problem !== null) return refusedAt(['fields', field], problem)
    if (new Set(values.map(String)).size < values.length)
      return refusedAt(['fields', field], `${field} has the same value twice`)
  }
  const combinations = sweepSize([0], [0], axes)
  if (combinations > LIMITS.sweptSettings) {
    return refusedAt(
      ['fields'],
      `fields result in ${combinations} combinations; the limit is ${LIMITS.sweptSettings}`,
    )
  }
  for (const settings of axes.length === 0 ? [] : settingsOf(axes)) {
    const refused = settingRefusal(source, settings, withinMs)
    if (refused !== null) return refused
  }
  return null
}

function settingRefusal(
  source: ScenarioSource,
  settings: Settings,
  withinMs: DurationMs | null,
): Refused | null {
  try {
    const tooLarge = whyTooLarge(factsOf(loadScenario(source, overridesOf(settings)), withinMs))
    return tooLarge === null ? null : refusedAt(['fields'], `with ${settingsText(settings)}: ${tooLarge}`)
  } catch (error) {
    if (!(error instanceof ScenarioError)) throw error
    const [{ path, detail } = { path: '', detail: 'is invalid' }] = error.problems
    const dotted = path.replaceAll(/\[(\d+)\]/g, '.$1')
    const field = Object.keys(settings).find(
      (each) => dotted === each || dotted.startsWith(`${each}.`) || each.startsWith(`${dotted}.`),
    )
    return refusedAt(
      field === undefined ? ['fields'] : ['fields', field],
      `with ${settingsText(settings)}: ${path === '' ? '' : `${path}: `}${detail}`,
    )
  }
}

/** @param way path of the field in the body */
function refusedAt(way: readonly string[], detail: string): Refused {
  return {
    kind: 'invalid',
    field: way.map((key) => key.replaceAll('~', '~0').replaceAll('/', '~1')).join('/'),
    detail,
  }
}
