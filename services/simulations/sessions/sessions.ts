/** The open sessions: a process each, limited in number, ended after a time without requests. */
import { randomUUID } from 'node:crypto'
import type {
  Debrief,
  ExerciseView,
  ForwardedAnswer,
  ForwardedRequest,
  Outcome,
  ScenarioFacts,
  SessionCommand,
  SessionFault,
  SessionRequest,
  SessionView,
  SimulationRecord,
} from '../../../controller/ports/simulation.ts'
import { WorkerFault } from '../../workers/worker-process.ts'
import type { SimulationRegistry } from '../jobs/simulation-registry.ts'
import { LIMITS, refused } from '../library/limits.ts'
import { REPORT, newRecord, type RecordStore } from '../jobs/records.ts'
import { type Found } from '../library/scenario-gate.ts'
import type { SessionJob } from './session-messages.ts'
import { SessionProcess } from './session-process.ts'

/** The start of a session, for its record. */
interface SessionStart {
  readonly facts: Pick<ScenarioFacts, 'name' | 'sha256'>
  readonly exercise: string | null
}

interface Open {
  readonly process: SessionProcess
  readonly job: SessionJob
  readonly begun: SessionStart
  askedAt: number
}

const NO_CHOICES = { seed: null, untilMs: null, overcommitPercent: null }
const IDLE_CHECK_MS = 30_000
const RETRY_AFTER_SECONDS = 60

export class Sessions {
  readonly #registry: SimulationRegistry
  readonly #store: RecordStore
  readonly #now: () => number
  readonly #open = new Map<string, Open>()
  readonly #timer: NodeJS.Timeout

  constructor(registry: SimulationRegistry, store: RecordStore, now: () => number) {
    this.#registry = registry
    this.#store = store
    this.#now = now
    this.#timer = setInterval(() => this.#endIdle(), IDLE_CHECK_MS).unref()
  }

  has(id: string): boolean {
    return this.#open.has(id)
  }

  start(
    found: Found,
    { seed, untilMs, overcommitPercent, speed, isPaused, by }: SessionRequest,
  ): Promise<Outcome<SimulationRecord>> {
    const choices = { seed, untilMs, overcommitPercent }
    return this.#start(
      { facts: found.facts, exercise: null },
      { source: found.source, choices, branch: null, speed, isPaused },
      by,
    )
  }

  /** @param file the file of the exercise */
  startExercise(
    name: string,
    file: string,
    sha256: string,
    by: string | null,
  ): Promise<Outcome<SimulationRecord>> {
    const job = { source: { exercise: file }, choices: NO_CHOICES, branch: null, speed: 1, isPaused: true }
    return this.#start({ facts: { name, sha256 }, exercise: name }, job, by)
  }

  exercise(id: string): Promise<Outcome<ExerciseView>> {
    return this.#with(id, ({ process }) => process.exercise())
  }

  answer(
    id: string,
    question: string,
    value: string | number,
    by: string | null,
  ): Promise<Outcome<ExerciseView>> {
    return this.#with(id, ({ process }) => process.answer(question, value, by))
  }

  /** The session has ended when this resolves. */
  async finish(id: string): Promise<Outcome<Debrief>> {
    const debrief = await this.#with(id, ({ process }) => process.finish())
    if (!debrief.ok) return debrief
    await this.#store.writeFile(id, REPORT, JSON.stringify(debrief.value))
    const open = this.#open.get(id)
    this.#open.delete(id)
    this.#registry.change(id, { state: 'done', endedAt: this.#now(), progress: 1 })
    await open?.process.end()
    return debrief
  }

  async fork(id: string, snapshot: string | null, by: string | null): Promise<Outcome<SimulationRecord>> {
    const branch = await this.#with(id, ({ process }) => process.branch(snapshot))
    if (!branch.ok) return branch
    const { job, begun } = this.#open.get(id) as Open
    return this.#start(begun, { ...job, branch: branch.value, isPaused: true }, by)
  }

  control(id: string, command: SessionCommand): Promise<Outcome<SessionView>> {
    return this.#with(id, ({ process }) => process.control(command))
  }

  async injectFault(
    id: string,
    fault: object,
    isHidden: boolean,
    by: string | null,
  ): Promise<Outcome<readonly SessionFault[]>> {
    const entry = JSON.stringify([{ at: '0s', ...fault }], null, 2)
    const answer = await this.#with(id, ({ process }) => process.injectFault(entry, isHidden, by))
    if (!answer.ok) return answer
    return 'problems' in answer.value
      ? refused({ code: 'invalid_fault', problems: answer.value.problems })
      : { ok: true, value: answer.value }
  }

  faults(id: string): Promise<Outcome<readonly SessionFault[]>> {
    return this.#with(id, ({ process }) => process.faults())
  }

  ask(id: string, request: ForwardedRequest): Promise<Outcome<ForwardedAnswer>> {
    return this.#with(id, ({ process }) => process.ask(request))
  }

  async end(id: string, reason: string): Promise<void> {
    const open = this.#open.get(id)
    this.#open.delete(id)
    this.#registry.change(id, { state: 'cancelled', endedAt: this.#now(), reason })
    await open?.process.end()
  }

  async close(reason: string): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all([...this.#open.keys()].map((id) => this.end(id, reason)))
  }

  async #start(begun: SessionStart, job: SessionJob, by: string | null): Promise<Outcome<SimulationRecord>> {
    if (this.#open.size >= LIMITS.sessions) {
      const detail = `The limit of ${LIMITS.sessions} open sessions is reached. Delete one first.`
      return refused({ code: 'too_many', detail, retryAfterSeconds: RETRY_AFTER_SECONDS })
    }
    const now = this.#now()
    const record = newRecord({ id: randomUUID(), kind: 'session', ...begun, choices: job.choices, by, now })
    const { id } = record
    const process = new SessionProcess(
      (virtualMs, endMs) => this.#registry.advanced(id, endMs === null ? 0 : Math.min(1, virtualMs / endMs)),
      (fault) => this.#failed(id, fault),
    )
    this.#open.set(id, { process, job, begun, askedAt: now })
    this.#registry.add({ ...record, state: 'running', startedAt: now })
    try {
      await process.open(job)
    } catch (error) {
      this.#failed(id, error as Error)
      await process.end()
    }
    return { ok: true, value: this.#registry.get(id) ?? record }
  }

  #failed(id: string, error: Error): void {
    if (!this.#open.delete(id)) return
    this.#registry.change(id, { state: 'failed', endedAt: this.#now(), reason: error.message })
  }

  async #with<T>(id: string, act: (open: Open) => Promise<T>): Promise<Outcome<T>> {
    const open = this.#open.get(id)
    if (open === undefined) return this.#closed(id)
    open.askedAt = this.#now()
    try {
      return { ok: true, value: await act(open) }
    } catch (error) {
      if (error instanceof WorkerFault) return refused({ code: 'conflict', detail: error.message })
      if (error instanceof Error && error.name === 'SessionConflict')
        return refused({ code: 'conflict', detail: error.message })
      throw error
    }
  }

  #closed(id: string): Outcome<never> {
    const record = this.#registry.get(id)
    if (record === undefined) return refused({ code: 'not_found', what: 'simulation', id })
    const detail =
      record.kind === 'session'
        ? `The session is ${record.state}: ${record.reason ?? ''}`
        : 'The simulation is not a session.'
    return refused({ code: 'conflict', detail })
  }

  #endIdle(): void {
    const before = this.#now() - LIMITS.sessionIdleMs
    for (const [id, { askedAt }] of this.#open) {
      if (askedAt < before) void this.end(id, `No requests for ${LIMITS.sessionIdleMs / 60_000} min.`)
    }
  }
}
