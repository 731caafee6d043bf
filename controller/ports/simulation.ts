/**
 * What the controller asks of a simulator that it does not know: runs and sweeps of scenarios, the library
 * they come from. Whoever puts the process together fills it; runs happen outside the controller's thread.
 */
import type { Role } from '../domain/role.ts'
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

export interface SweepRequest extends Omit<RunRequest, 'seed' | 'overcommitPercent'> {
  /** Null: those that the scenario itself wants to be swept. */
  readonly percentages: readonly Percent[] | null
  /** Each percentage is run with each of them; null: the scenario's own. */
  readonly seeds: readonly number[] | null
  /** Each combination of their values is run at each percentage with each seed. */
  readonly fields: readonly SweptField[]
  /** What a percentage has to keep to be recommended, such as `starvation.total<=20`; none: that one. */
  readonly objectives: readonly string[]
}

/** A field of the scenario by its dotted path, `fleet.0.count`, and the values tried. */
export interface SweptField {
  readonly field: string
  readonly values: readonly (number | string | boolean | null)[]
}

export type SweepFileFormat = 'csv' | 'html'

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
  /** Name of the exercise that a session is; null: none. */
  readonly exercise: string | null
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
  | { readonly code: 'invalid_fault'; readonly problems: readonly ScenarioProblem[] }
  /** It is right, and more than is run here. */
  | { readonly code: 'too_large'; readonly detail: string }
  | { readonly code: 'not_found'; readonly what: 'simulation' | 'scenario' | 'exercise'; readonly id: string }
  | { readonly code: 'body_too_large'; readonly limitBytes: number }
  /** `field`: its JSON Pointer in the body, without the first slash. */
  | { readonly code: 'invalid'; readonly field: string; readonly detail: string }
  | { readonly code: 'conflict'; readonly detail: string }
  /** It belongs to another owner. */
  | { readonly code: 'forbidden'; readonly detail: string }
  /** A limit of uploads is reached, or the disk is short. */
  | { readonly code: 'uploads_full'; readonly detail: string }
  | { readonly code: 'too_many'; readonly detail: string; readonly retryAfterSeconds: number }

export type Outcome<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: SimulationRefusal }

/** What a scenario would be, once it was found right. */
export interface ScenarioFacts {
  readonly name: string
  readonly description: string | null
  readonly sha256: string
  readonly nodes: number
  readonly gpus: number
  /** About; those of traces are not counted. */
  readonly expectedTasks: number
  readonly seed: number
  readonly untilMs: DurationMs | null
  /** What its own sweep varies beside the percentage, and at how many values. */
  readonly sweptFields: ReadonlyArray<{ readonly field: string; readonly values: number }>
}

export interface LibraryEntry {
  readonly name: string
  readonly description: string | null
  /** The folder it stands in: what it is for; null: none. */
  readonly purpose: string | null
  /**
   * Why a run of it to its end is refused; null: it may be run. A session or a shorter run of it may be
   * possible.
   */
  readonly tooLargeBecause: string | null
  /** Somebody has stored it here. */
  readonly isOwn: boolean
  /** Who has stored it; null: not known, or it came with Headroom. */
  readonly createdBy: string | null
}

/** A run over time: columns on one x, seconds since its start. */
export interface SimulationSeries {
  readonly x: readonly number[]
  readonly columns: readonly { readonly name: string; readonly values: readonly number[] }[]
}

/** `moving`: it starts, or is swapped in or out. */
export const RESIDENCY_KINDS = ['resident', 'moving', 'out'] as const
export type RunResidencyKind = (typeof RESIDENCY_KINDS)[number]

/** Who was on which GPU when, and where his bytes were: bars of a Gantt chart, bounded in number. */
export interface RunResidency {
  /**
   * Names of the GPUs that are shown, `node / index`, in the order of the scenario; of a large fleet the
   * first ones.
   */
  readonly gpus: readonly string[]
  /** How many there are in all. */
  readonly gpuCount: number
  /** When the run ended, since its start. */
  readonly endMs: DurationMs
  /** From then on bars are left out, because there were too many; null: they are all there. */
  readonly cutAtMs: DurationMs | null
  /** Names. */
  readonly tasks: readonly string[]
  /** Columns, one entry for each bar. */
  readonly bars: {
    /** Index in `gpus`. */
    readonly gpu: readonly number[]
    /** Index in `tasks`. */
    readonly task: readonly number[]
    readonly kind: readonly RunResidencyKind[]
    readonly fromMs: readonly DurationMs[]
    readonly toMs: readonly DurationMs[]
  }
}

/** Which run of a sweep. */
export interface SweptRunKey {
  /**
   * Of the fields beside the percentage: `fleet.0.count=2, config.idle_swap_out_seconds=60`; empty for none.
   */
  readonly settings: string
  readonly overcommitPercent: Percent
  readonly seed: number
}

/** A run as it can be looked at again. */
export interface RunReplay {
  readonly residency: RunResidency
  readonly series: SimulationSeries
}

// ── sessions ─────────────────────────────────────────────────────────────────

/** Where a session stands, and how it goes on. */
export interface SessionView {
  /** What the virtual clock said at the start, and says now. */
  readonly startAt: Instant
  readonly nowAt: Instant
  readonly virtualMs: DurationMs
  /** It stops by itself then; null: never. */
  readonly endMs: DurationMs | null
  readonly isPaused: boolean
  /** Virtual time per real time while it goes on; null: as fast as it can. */
  readonly speed: number | null
  readonly isSeeking: boolean
  /** Entries of the event queue that were taken: `step` takes one more. */
  readonly events: number
  /** Seq of the newest event in its log. */
  readonly lastSeq: number
  /** What was done to it so far, and what lies ahead since it went back. */
  readonly inputs: number
  readonly inputsAhead: number
  /** Equal when it has come to the same point in the same way. */
  readonly stateHash: string
  readonly snapshots: readonly SessionSnapshot[]
}

export interface SessionSnapshot {
  readonly id: string
  readonly name: string
  readonly virtualMs: DurationMs
  readonly events: number
  readonly stateHash: string
}

export type SessionCommand =
  | { readonly kind: 'state' }
  | { readonly kind: 'pause' }
  /** Pauses it. */
  | { readonly kind: 'step'; readonly count: number }
  | { readonly kind: 'speed'; readonly factor: number | null }
  | { readonly kind: 'seek'; readonly virtualMs: DurationMs }
  | { readonly kind: 'restore'; readonly snapshot: string }
  | { readonly kind: 'snapshot'; readonly name: string }

/** Something that breaks in a session: of its scenario, or injected. */
export interface SessionFault {
  /** Since the start. */
  readonly atMs: DurationMs
  /** Whoever learns from it is not told. */
  readonly isHidden: boolean
  readonly origin: 'scenario' | 'injected'
  readonly by: string | null
  /** As the scenario language means it: `kind` and its figures. */
  readonly fault: Readonly<Record<string, unknown>>
}

export interface SessionRequest extends Omit<RunRequest, 'overcommitPercent'> {
  readonly overcommitPercent: Percent | null
  readonly speed: number | null
  readonly isPaused: boolean
}

// ── exercises ────────────────────────────────────────────────────────────────

/** What who learns from an exercise may know of it. */
export interface ExerciseBrief {
  readonly name: string
  readonly title: string
  readonly task: string
  readonly beginsAtMs: DurationMs
  readonly endsAtMs: DurationMs
  readonly questions: readonly {
    readonly id: string
    readonly ask: string
    readonly points: number
    readonly choices: readonly string[] | null
  }[]
  readonly objectives: readonly { readonly id: string; readonly text: string; readonly points: number }[]
}

/** Something that was done through the REST interface. */
export interface ExerciseAction {
  readonly virtualMs: DurationMs
  readonly method: string
  readonly path: string
  /** JSON; null: none. */
  readonly body: unknown
  readonly by: string | null
}

/** An exercise under way. */
export interface ExerciseView {
  readonly brief: ExerciseBrief
  readonly answers: Readonly<Record<string, string | number>>
  readonly actions: readonly ExerciseAction[]
}

interface Marked {
  readonly score: { readonly points: number; readonly of: number }
  readonly marks: readonly {
    readonly id: string
    readonly text: string
    readonly points: number
    readonly of: number
    readonly reason: string
  }[]
  readonly actions: readonly ExerciseAction[]
  readonly answers: Readonly<Record<string, string | number>>
  /** As a report of a run has them. */
  readonly metrics: object
  readonly replay: RunReplay
}

/** What was reached and why, beside what who knows would have done. */
export interface Debrief extends Marked {
  readonly exercise: string
  readonly title: string
  readonly explanation: string
  /** When who learns took over: until then both runs are the same. */
  readonly beginsAtMs: DurationMs
  readonly reference: Marked
}

/** A request to the REST interface of a session's own controller, as it came. */
export interface ForwardedRequest {
  readonly method: string
  /** From `/api/v1/` on, with the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | null
  /** Who asks: the roles of the session's routes hold for him. */
  readonly by: string | null
  readonly role: Role
}

export interface ForwardedAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Ends when the answer does; whoever stops reading ends it. */
  readonly body: AsyncIterable<Uint8Array>
}

// ── traces ───────────────────────────────────────────────────────────────────

export interface TraceUpload {
  readonly name: string
  /** Null: it is a trace of Headroom already. */
  readonly format: string | null
  readonly activityModel: 'always-busy' | 'serving' | 'training' | null
  readonly body: AsyncIterable<Uint8Array>
  readonly by: Uploader
}

/** Who stores or deletes a scenario or a trace. */
export interface Uploader {
  readonly name: string | null
  /** May replace and delete what others have stored: an operator. */
  readonly mayChangeOthers: boolean
}

/** What uploads take, and may take. */
export interface UploadUsage {
  readonly traces: number
  readonly scenarios: number
  readonly bytes: number
  readonly maxBytes: number
  readonly totalBytes: number
  readonly totalMaxBytes: number
}

/** A trace that somebody has sent; scenarios call it traces/NAME.trace.jsonl. */
export interface TraceEntry {
  readonly name: string
  readonly format: string
  readonly tasks: number
  /** Of what was sent. */
  readonly rows: number
  /** How many rows are not in it, by reason. */
  readonly dropped: Readonly<Record<string, number>>
  readonly createdAt: Instant
  readonly createdBy: string | null
  /** On disk. */
  readonly bytes: number
}

export interface Simulation {
  /** The scenario is read and found right before it is queued. */
  run(request: RunRequest): Promise<Outcome<SimulationRecord>>
  /** The same scenario at several percentages, and which of them to take. */
  sweep(request: SweepRequest): Promise<Outcome<SimulationRecord>>
  /** A world that is driven by hand. */
  openSession(request: SessionRequest): Promise<Outcome<SimulationRecord>>
  control(id: string, command: SessionCommand): Promise<Outcome<SessionView>>
  /** Another session that goes on from where this one is, or was when that snapshot was made. */
  fork(id: string, snapshot: string | null, by: string | null): Promise<Outcome<SimulationRecord>>
  /**
   * @param fault as an entry of `faults` in a scenario, without its `at`: it begins now. Answers all there
   *   are.
   */
  injectFault(
    id: string,
    fault: Readonly<Record<string, unknown>>,
    isHidden: boolean,
    by: string | null,
  ): Promise<Outcome<readonly SessionFault[]>>
  /** In order of their names. */
  exercises(): Promise<readonly ExerciseBrief[]>
  /** A session at the beginning of that exercise. */
  startExercise(name: string, by: string | null): Promise<Outcome<SimulationRecord>>
  exercise(id: string): Promise<Outcome<ExerciseView>>
  /** The last answer to a question counts. */
  answer(
    id: string,
    question: string,
    value: string | number,
    by: string | null,
  ): Promise<Outcome<ExerciseView>>
  /** Brings it to its end and scores it; the session is over then, and the debrief its report. */
  finish(id: string): Promise<Outcome<Debrief>>
  /** The hidden ones, too. */
  faults(id: string): Promise<Outcome<readonly SessionFault[]>>
  ask(id: string, request: ForwardedRequest): Promise<Outcome<ForwardedAnswer>>
  /** Newest first. */
  list(): readonly SimulationRecord[]
  get(id: string): SimulationRecord | undefined
  /** Resolves when the record has a higher revision than that, is gone, or `withinMs` are over. */
  changed(id: string, revision: number, withinMs: DurationMs): Promise<void>
  /** The result as JSON; of a cancelled sweep, what was done of it. Null: there is none (yet). */
  report(id: string): Promise<object | null>
  /** The same of a sweep, as text: byte for byte the `result.json` of `headroom sim sweep --out`. */
  sweepReport(id: string): Promise<string | null>
  /**
   * The result of a sweep, byte for byte as `runs.csv` and `report.html` of `headroom sim sweep --out`. Null:
   * there is none (yet).
   */
  sweepFile(id: string, format: SweepFileFormat): Promise<Outcome<string | null>>
  /** Of a run, or of that run of a sweep. Null: there is none (yet), or it was not kept. */
  series(id: string, run: SweptRunKey | null): Promise<SimulationSeries | null>
  /** Of a run, or of that run of a sweep. Null: there is none (yet), or it was not kept. */
  residency(id: string, run: SweptRunKey | null): Promise<RunResidency | null>
  /**
   * One that is not over is cancelled and stays in the list; one that is over goes with its results.
   * Undefined: there is none of that id.
   */
  remove(id: string, reason: string): Promise<SimulationRecord | undefined>
  /** Takes a trace, or turns what was sent into one. */
  storeTrace(upload: TraceUpload): Promise<Outcome<TraceEntry>>
  /** In order of their names. */
  traces(): Promise<readonly TraceEntry[]>
  /** The value says whether there was one. */
  removeTrace(name: string, by: Uploader): Promise<Outcome<boolean>>
  usage(owner: string | null): Promise<UploadUsage>
  /** In order of their names. */
  scenarios(): Promise<readonly LibraryEntry[]>
  scenario(name: string): Promise<(LibraryEntry & { readonly text: string }) | undefined>
  /** Stores a text that is found right, under the name that it gives itself; one of one's own is replaced. */
  putScenario(text: string, by: Uploader): Promise<Outcome<ScenarioFacts>>
  /** The value says whether there was one. */
  removeScenario(name: string, by: Uploader): Promise<Outcome<boolean>>
  validate(scenario: ScenarioReference): Promise<Outcome<ScenarioFacts>>
}
