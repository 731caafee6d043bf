/**
 * What the controller asks of a simulator that it does not know: runs and sweeps of scenarios, the library they come from. Whoever puts the process together
 * fills it; runs happen outside the controller's thread.
 */
import type { DurationMs, Instant, Percent } from '../../protocol/units.ts'

export const SIMULATION_KINDS = ['run', 'sweep', 'session'] as const
export type SimulationKind = (typeof SIMULATION_KINDS)[number]

export const SIMULATION_STATES = ['queued', 'running', 'done', 'failed', 'cancelled'] as const
export type SimulationState = (typeof SIMULATION_STATES)[number]

/** One that ends: nothing more happens to it. */
export function isOver(state: SimulationState): boolean {
  return state === 'done' || state === 'failed' || state === 'cancelled'
}

/** By name from the library, or as YAML or JSON text. */
export type ScenarioReference = { readonly name: string } | { readonly text: string }

/** In place of the scenario's own; null leaves that. */
export interface RunChoices {
  readonly seed: number | null
  readonly untilMs: DurationMs | null
  readonly overcommitPercent: Percent | null
}

export interface RunRequest extends RunChoices {
  readonly scenario: ScenarioReference
  /** The name of who asks; null: nobody has to say who he is. */
  readonly by: string | null
}

/** What a simulation is and how far. */
export interface SimulationRecord {
  readonly id: string
  readonly kind: SimulationKind
  readonly state: SimulationState
  /** Grows with every change. */
  readonly revision: number
  /** Name of the scenario, as it says it. */
  readonly scenario: string
  readonly scenarioSha256: string
  readonly choices: RunChoices
  readonly createdBy: string | null
  readonly createdAt: Instant
  readonly startedAt: Instant | null
  readonly endedAt: Instant | null
  /** 0 to 1. */
  readonly progress: number
  /** Why it failed or was cancelled; null otherwise. */
  readonly reason: string | null
}

/** What is wrong with a scenario, in the order of its text; `line` and `column` from 1. */
export interface ScenarioProblem {
  readonly line: number
  readonly column: number
  readonly path: string
  readonly detail: string
}

export type SimulationRefusal =
  | { readonly code: 'invalid_scenario'; readonly problems: readonly ScenarioProblem[] }
  /** It is right, and more than is run here. */
  | { readonly code: 'too_large'; readonly detail: string }
  | { readonly code: 'not_found'; readonly what: 'simulation' | 'scenario'; readonly id: string }
  | { readonly code: 'conflict'; readonly detail: string }
  | { readonly code: 'too_many'; readonly detail: string; readonly retryAfterSeconds: number }

export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: SimulationRefusal }

/** What a scenario would be, once it was found right. */
export interface ScenarioFacts {
  readonly name: string
  readonly description: string | null
  readonly sha256: string
  readonly nodes: number
  readonly gpus: number
  /** About; those of traces are not counted. */
  readonly expectedTasks: number
  readonly untilMs: DurationMs | null
}

export interface LibraryEntry {
  readonly name: string
  readonly description: string | null
  /** The folder it stands in: what it is for; null: none. */
  readonly purpose: string | null
  /** Somebody has stored it here. */
  readonly isOwn: boolean
}

/** A run over time: columns on one x, seconds since its start. */
export interface SimulationSeries {
  readonly x: readonly number[]
  readonly columns: readonly { readonly name: string; readonly values: readonly number[] }[]
}

export interface Simulation {
  /** The scenario is read and found right before it is queued. */
  run(request: RunRequest): Promise<Outcome<SimulationRecord>>
  /** Newest first. */
  list(): readonly SimulationRecord[]
  get(id: string): SimulationRecord | undefined
  /** Resolves when the record has a higher revision than that, is gone, or `withinMs` are over. */
  changed(id: string, revision: number, withinMs: DurationMs): Promise<void>
  /** The result as JSON; of a cancelled sweep, what was done of it. Null: there is none (yet). */
  report(id: string): Promise<object | null>
  series(id: string): Promise<SimulationSeries | null>
  /** One that is not over is cancelled and stays in the list; one that is over goes with its results. Undefined: there is none of that id. */
  remove(id: string, reason: string): Promise<SimulationRecord | undefined>
  /** In order of their names. */
  scenarios(): Promise<readonly LibraryEntry[]>
  scenario(name: string): Promise<(LibraryEntry & { readonly text: string }) | undefined>
  /** Stores a text that is found right, under the name that it gives itself; one of one's own is replaced. */
  putScenario(text: string): Promise<Outcome<ScenarioFacts>>
  /** Undefined: there is none. False: it came with Headroom and stays. */
  removeScenario(name: string): Promise<boolean | undefined>
  validate(scenario: ScenarioReference): Promise<Outcome<ScenarioFacts>>
}
