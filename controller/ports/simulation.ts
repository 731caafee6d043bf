/**
 * The simulator as the controller sees it: runs and sweeps of scenarios, and the library of scenarios. The
 * composition root provides it; runs happen outside the controller's thread.
 */
import type { Role } from '../model/role.ts'
import type { DurationMs, Instant, Percent } from '../../protocol/units.ts'

export const SIMULATION_KINDS = ['run', 'sweep', 'session'] as const
export type SimulationKind = (typeof SIMULATION_KINDS)[number]

export const SIMULATION_STATES = ['queued', 'running', 'done', 'failed', 'cancelled'] as const
export type SimulationState = (typeof SIMULATION_STATES)[number]

/** Final states. */
export function isOver(state: SimulationState): boolean {
  return state === 'done' || state === 'failed' || state === 'cancelled'
}

/** By name from the library, or as YAML or JSON text. */
export type ScenarioReference = { readonly name: string } | { readonly text: string }

/** Replaces the scenario's own value; null keeps it. */
export interface RunChoices {
  readonly seed: number | null
  readonly untilMs: DurationMs | null
  readonly overcommitPercent: Percent | null
}

export interface RunRequest extends RunChoices {
  readonly scenario: ScenarioReference
  /** The name of the caller; null: callers are anonymous. */
  readonly by: string | null
}

export interface SweepRequest extends Omit<RunRequest, 'seed' | 'overcommitPercent'> {
  /** Null: those of the scenario's own sweep. */
  readonly percentages: readonly Percent[] | null
  /** Each percentage is run with each seed; null: the scenario's own. */
  readonly seeds: readonly number[] | null
  /** Each combination of their values is run at each percentage with each seed. */
  readonly fields: readonly SweptField[]
  /** Condition for recommending a percentage, such as `starvation.total<=20`; none given: that one. */
  readonly objectives: readonly string[]
}

/** A field of the scenario by its dotted path, `fleet.0.count`, and the values tried. */
export interface SweptField {
  readonly field: string
  readonly values: readonly (number | string | boolean | null)[]
}

export type SweepFileFormat = 'csv' | 'html'

/** Description and progress of a simulation. */
export interface SimulationRecord {
  readonly id: string
  readonly kind: SimulationKind
  readonly state: SimulationState
  /** Grows with every change. */
  readonly revision: number
  /** Name of the scenario, as the scenario states it. */
  readonly scenario: string
  readonly scenarioSha256: string
  /** Name of the exercise of a session; null: none. */
  readonly exercise: string | null
  readonly choices: RunChoices
  readonly createdBy: string | null
  readonly createdAt: Instant
  readonly startedAt: Instant | null
  readonly endedAt: Instant | null
  /** 0 to 1. */
  readonly progress: number
  /** Why it failed or was cancelled; otherwise null. */
  readonly reason: string | null
}

/** Errors of a scenario, in the order of its text; `line` and `column` from 1. */
export interface ScenarioProblem {
  readonly line: number
  readonly column: number
  readonly path: string
  readonly detail: string
}

export type SimulationRefusal =
  | { readonly code: 'invalid_scenario'; readonly problems: readonly ScenarioProblem[] }
  | { readonly code: 'invalid_fault'; readonly problems: readonly ScenarioProblem[] }
  /** It is valid, but exceeds the limits of this controller. */
  | { readonly code: 'too_large'; readonly detail: string }
  | { readonly code: 'not_found'; readonly what: 'simulation' | 'scenario' | 'exercise'; readonly id: string }
  | { readonly code: 'body_too_large'; readonly limitBytes: number }
  /** `field`: its JSON Pointer in the body, without the first slash. */
  | { readonly code: 'invalid'; readonly field: string; readonly detail: string }
  | { readonly code: 'conflict'; readonly detail: string }
  /** It belongs to another owner. */
  | { readonly code: 'forbidden'; readonly detail: string }
  /** A limit of uploads is reached, or the disk is nearly full. */
  | { readonly code: 'uploads_full'; readonly detail: string }
  | { readonly code: 'too_many'; readonly detail: string; readonly retryAfterSeconds: number }

export type Outcome<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: SimulationRefusal }

/** Properties of a valid scenario. */
export interface ScenarioFacts {
  readonly name: string
  readonly description: string | null
  readonly sha256: string
  readonly nodes: number
  readonly gpus: number
  /** Approximate; tasks of traces are not counted. */
  readonly expectedTasks: number
  readonly seed: number
  readonly untilMs: DurationMs | null
  /** The fields that its own sweep varies besides the percentage, and the number of values. */
  readonly sweptFields: ReadonlyArray<{ readonly field: string; readonly values: number }>
}

export interface LibraryEntry {
  readonly name: string
  readonly description: string | null
  /** The folder it is in, which states its purpose; null: none. */
  readonly purpose: string | null
  /** Why a complete run is refused; null: it is allowed. A session or a shorter run may be possible. */
  readonly tooLargeBecause: string | null
  /** It was uploaded here. */
  readonly isOwn: boolean
  /** The user who uploaded it; null: unknown, or it came with Headroom. */
  readonly createdBy: string | null
}

/** A run over time: columns with one x, seconds since its start. */
export interface SimulationSeries {
  readonly x: readonly number[]
  readonly columns: readonly { readonly name: string; readonly values: readonly number[] }[]
}

/** `moving`: it is starting or being swapped in or out. */
export const RESIDENCY_KINDS = ['resident', 'moving', 'out'] as const
export type RunResidencyKind = (typeof RESIDENCY_KINDS)[number]

/** Which task was on which GPU when, and its residency: bars of a Gantt chart, bounded in number. */
export interface RunResidency {
  /**
   * Names of the GPUs shown, `node / index`, in the order of the scenario; for a large fleet the first ones.
   */
  readonly gpus: readonly string[]
  /** Total number of GPUs. */
  readonly gpuCount: number
  /** When the run ended, since its start. */
  readonly endMs: DurationMs
  /** From then on bars are omitted, because there were too many; null: none is omitted. */
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

/** Selects a run of a sweep. */
export interface SweptRunKey {
  /**
   * The fields besides the percentage: `fleet.0.count=2, config.idle_swap_out_seconds=60`; empty for none.
   */
  readonly settings: string
  readonly overcommitPercent: Percent
  readonly seed: number
}

/** A run that can be replayed. */
export interface RunReplay {
  readonly residency: RunResidency
  readonly series: SimulationSeries
}

// ── sessions ─────────────────────────────────────────────────────────────────

/** The state of a session. */
export interface SessionView {
  /** The virtual clock at the start, and now. */
  readonly startAt: Instant
  readonly nowAt: Instant
  readonly virtualMs: DurationMs
  /** When it stops by itself; null: never. */
  readonly endMs: DurationMs | null
  readonly isPaused: boolean
  /** Virtual time per real time while it runs; null: as fast as possible. */
  readonly speed: number | null
  readonly isSeeking: boolean
  /** Number of event-queue entries processed: `step` processes one more. */
  readonly events: number
  /** Seq of the newest event in its log. */
  readonly lastSeq: number
  /** Actions so far, and actions still ahead after going back. */
  readonly inputs: number
  readonly inputsAhead: number
  /** Equal for equal states reached by equal actions. */
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

/** A fault in a session: from its scenario, or injected. */
export interface SessionFault {
  /** Since the start. */
  readonly atMs: DurationMs
  /** Hidden from the learner. */
  readonly isHidden: boolean
  readonly origin: 'scenario' | 'injected'
  readonly by: string | null
  /** The fault in the scenario language: `kind` and its parameters. */
  readonly fault: Readonly<Record<string, unknown>>
}

export interface SessionRequest extends Omit<RunRequest, 'overcommitPercent'> {
  readonly overcommitPercent: Percent | null
  readonly speed: number | null
  readonly isPaused: boolean
}

// ── exercises ────────────────────────────────────────────────────────────────

/** The part of an exercise that the learner may see. */
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

/** An action through the REST API. */
export interface ExerciseAction {
  readonly virtualMs: DurationMs
  readonly method: string
  readonly path: string
  /** JSON; null: none. */
  readonly body: unknown
  readonly by: string | null
}

/** An exercise in progress. */
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
  /** Metrics in the form of a run's report. */
  readonly metrics: object
  readonly replay: RunReplay
}

/** The result and its reasons, compared with the reference solution. */
export interface Debrief extends Marked {
  readonly exercise: string
  readonly title: string
  readonly explanation: string
  /** When the learner took over: until then both runs are the same. */
  readonly beginsAtMs: DurationMs
  readonly reference: Marked
}

/** A request to the REST API of a session's own controller, unchanged. */
export interface ForwardedRequest {
  readonly method: string
  /** From `/api/v1/` on, with the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | null
  /** The caller; the roles of the session's routes apply. */
  readonly by: string | null
  readonly role: Role
}

export interface ForwardedAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Ends with the answer; a reader that stops reading ends it. */
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

/** The caller that stores or deletes a scenario or a trace. */
export interface Uploader {
  readonly name: string | null
  /** May replace and delete what others have uploaded: an operator. */
  readonly mayChangeOthers: boolean
}

/** Usage and limits of uploads. */
export interface UploadUsage {
  readonly traces: number
  readonly scenarios: number
  readonly bytes: number
  readonly maxBytes: number
  readonly totalBytes: number
  readonly totalMaxBytes: number
}

/** An uploaded trace; scenarios refer to it as traces/NAME.trace.jsonl. */
export interface TraceEntry {
  readonly name: string
  readonly format: string
  readonly tasks: number
  /** Number of rows in the upload. */
  readonly rows: number
  /** Number of rows that were left out, by reason. */
  readonly dropped: Readonly<Record<string, number>>
  readonly createdAt: Instant
  readonly createdBy: string | null
  /** On disk. */
  readonly bytes: number
}

export interface Simulation {
  /** The scenario is validated before it is queued. */
  run(request: RunRequest): Promise<Outcome<SimulationRecord>>
  /** Runs the scenario at several percentages and recommends one. */
  sweep(request: SweepRequest): Promise<Outcome<SimulationRecord>>
  /** A simulation controlled step by step. */
  openSession(request: SessionRequest): Promise<Outcome<SimulationRecord>>
  control(id: string, command: SessionCommand): Promise<Outcome<SessionView>>
  /** Another session that continues from the current state of this one, or from that snapshot. */
  fork(id: string, snapshot: string | null, by: string | null): Promise<Outcome<SimulationRecord>>
  /**
   * @param fault as an entry of `faults` in a scenario, without its `at`: it begins now. Returns all faults.
   */
  injectFault(
    id: string,
    fault: Readonly<Record<string, unknown>>,
    isHidden: boolean,
    by: string | null,
  ): Promise<Outcome<readonly SessionFault[]>>
  /** Ordered by name. */
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
  /** Runs it to its end and scores it; the session is then over, and the debrief is its report. */
  finish(id: string): Promise<Outcome<Debrief>>
  /** Including hidden ones. */
  faults(id: string): Promise<Outcome<readonly SessionFault[]>>
  ask(id: string, request: ForwardedRequest): Promise<Outcome<ForwardedAnswer>>
  /** Newest first. */
  list(): readonly SimulationRecord[]
  get(id: string): SimulationRecord | undefined
  /** Resolves when the record has a higher revision, is gone, or `withinMs` have passed. */
  changed(id: string, revision: number, withinMs: DurationMs): Promise<void>
  /** The result as JSON; for a cancelled sweep, the part that was done. Null: none exists (yet). */
  report(id: string): Promise<object | null>
  /** The result of a sweep as text: byte for byte the `result.json` of `headroom sim sweep --out`. */
  sweepReport(id: string): Promise<string | null>
  /**
   * The result of a sweep, byte for byte as `runs.csv` and `report.html` of `headroom sim sweep --out`. Null:
   * none exists (yet).
   */
  sweepFile(id: string, format: SweepFileFormat): Promise<Outcome<string | null>>
  /** For a run, or that run of a sweep. Null: none exists (yet), or it was not kept. */
  series(id: string, run: SweptRunKey | null): Promise<SimulationSeries | null>
  /** For a run, or that run of a sweep. Null: none exists (yet), or it was not kept. */
  residency(id: string, run: SweptRunKey | null): Promise<RunResidency | null>
  /**
   * Cancels a simulation that is not over, which stays in the list; deletes one that is over, with its
   * results. Undefined: no simulation has that id.
   */
  remove(id: string, reason: string): Promise<SimulationRecord | undefined>
  /** Stores an uploaded trace, or converts the upload into one. */
  storeTrace(upload: TraceUpload): Promise<Outcome<TraceEntry>>
  /** Ordered by name. */
  traces(): Promise<readonly TraceEntry[]>
  /** The value says whether there was one. */
  removeTrace(name: string, by: Uploader): Promise<Outcome<boolean>>
  usage(owner: string | null): Promise<UploadUsage>
  /** Ordered by name. */
  scenarios(): Promise<readonly LibraryEntry[]>
  scenario(name: string): Promise<(LibraryEntry & { readonly text: string }) | undefined>
  /** Stores a valid text under the name that it states; replaces an earlier upload of the same owner. */
  putScenario(text: string, by: Uploader): Promise<Outcome<ScenarioFacts>>
  /** The value says whether there was one. */
  removeScenario(name: string, by: Uploader): Promise<Outcome<boolean>>
  validate(scenario: ScenarioReference): Promise<Outcome<ScenarioFacts>>
}
