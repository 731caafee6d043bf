/**
 * A session in its process: keeps pace with real time, processes commands one after the other, and serves
 * readers meanwhile.
 */
import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type {
  Debrief,
  ExerciseView,
  SessionCommand,
  SessionFault,
  SessionSnapshot,
  SessionView,
} from '../../../controller/ports/simulation.ts'
import type { DurationMs } from '../../../protocol/units.ts'
import { briefOf } from '../../../simulator/exercise/brief.ts'
import type { Exercise } from '../../../simulator/exercise/exercise.ts'
import type { RunPlan } from '../../../simulator/run/run.ts'
import { Session } from '../../../simulator/session/session.ts'
import type { Position } from '../../../simulator/session/steppable-world.ts'
import { SUCCESSION_KINDS } from '../../../simulator/scenario/fault.ts'
import { readFaults } from '../../../simulator/session/read-faults.ts'
import type { AnswerInput, Input, RequestInput, Unplaced } from './session-input.ts'
import { actionsIn, answersIn, debriefOf } from './exercise-run.ts'
import { openSessionWorld, type SessionWorld, type SessionAnswer } from './session-world.ts'

/** Interval at which virtual time follows real time. */
const PACE_MS = 40
/** Events processed before other work gets a turn. */
const SLICE_EVENTS = 4_000
const MAX_SNAPSHOTS = 100
const MAX_INPUTS = 100_000

/** A command that the session refuses; the message is for users. */
class SessionConflict extends Error {
  override readonly name = 'SessionConflict'
}

/** The starting point of a forked session. */
export interface Branch {
  readonly position: Position
  readonly inputs: readonly Input[]
}

export interface SessionHostOptions {
  readonly plan: RunPlan
  readonly branch: Branch | null
  readonly speed: number | null
  readonly isPaused: boolean
  /** Faults from its plan are hidden from the learner. */
  readonly exercise: Exercise | null
}

interface Kept extends SessionSnapshot, Branch {}

export class SessionHost {
  readonly #plan: RunPlan
  readonly #session: Session<Input>
  readonly #exercise: Exercise | null
  readonly #snapshots: Kept[] = []
  /** Virtual time per real time; null: as fast as possible. */
  #speed: number | null
  #isPaused: boolean
  #seekMs: DurationMs | null = null
  /** Virtual and real time when the speed was set. */
  #anchor = { real: 0, virtualMs: 0 }
  #isClosed = false
  #last: Promise<unknown> = Promise.resolve()

  static async open(options: SessionHostOptions): Promise<SessionHost> {
    const { plan, branch } = options
    const session = await Session.open<Input>({ open: () => openSessionWorld(plan) })
    if (branch !== null) await session.restore(branch.position, branch.inputs)
    else if (options.exercise !== null) await session.advanceTo(options.exercise.beginsAtMs)
    const host = new SessionHost(session, options)
    host.#setAnchor()
    void host.#advance()
    return host
  }

  private constructor(session: Session<Input>, { plan, speed, isPaused, exercise }: SessionHostOptions) {
    this.#plan = plan
    this.#session = session
    this.#speed = speed
    this.#isPaused = isPaused
    this.#exercise = exercise
  }

  get world(): SessionWorld {
    return this.#session.stage as SessionWorld
  }

  get inputs(): readonly Input[] {
    return this.#session.inputs
  }

  view(): SessionView {
    const { clock } = this.#plan
    const { world } = this.world
    return {
      startAt: clock.startMs,
      nowAt: clock.startMs + world.nowMs,
      virtualMs: world.nowMs,
      endMs: clock.untilMs,
      isPaused: this.#isPaused,
      speed: this.#speed,
      isSeeking: this.#seekMs !== null,
      events: world.clock.steps,
      lastSeq: world.controller.views.lastEventSeq(),
      inputs: this.#session.inputs.length,
      inputsAhead: this.#session.inputsAhead,
      stateHash: this.#session.stateHash(),
      snapshots: this.#snapshots.map(({ id, name, virtualMs, events, stateHash }) => ({
        id,
        name,
        virtualMs,
        events,
        stateHash,
      })),
    }
  }

  /** Cheap progress report. */
  get progress(): { readonly virtualMs: DurationMs; readonly endMs: DurationMs | null } {
    return { virtualMs: this.world.world.nowMs, endMs: this.#plan.clock.untilMs }
  }

  /** Throws SessionConflict. */
  async control(command: SessionCommand): Promise<SessionView> {
    switch (command.kind) {
      case 'state':
        return this.view()
      case 'pause':
        return this.#exclusively(() => this.#pause())
      case 'step':
        return this.#exclusively(() => this.#step(command.count))
      case 'speed':
        return this.#exclusively(() => this.#setSpeed(command.factor))
      case 'seek':
        return this.#seek(command.virtualMs)
      case 'restore':
        return this.#exclusively(() => this.#restore(this.#kept(command.snapshot)))
      case 'snapshot':
        return this.#exclusively(() => this.#keep(command.name))
    }
  }

  /** A request that may change something: virtual time does not advance until it is answered. */
  put(request: Unplaced<RequestInput>): Promise<SessionAnswer> {
    return this.#exclusively(async () => {
      const answered = (await this.#put(request)) as SessionAnswer
      if (!answered.isCommand) this.#session.forgetLast()
      return answered
    })
  }

  /** @param entry a list of one fault, as text. It starts now. Throws ScenarioError. */
  injectFault(entry: string, isHidden: boolean, by: string | null): Promise<void> {
    return this.#exclusively(async () => {
      const [fault] = readFaults(entry, this.#plan.nodes, 'fault')
      if (fault === undefined || fault.kind === 'swarm')
        throw new SessionConflict('A swarm cannot be injected. Inject one fault at a time.')
      if (fault.kind === 'store_set_back' && typeof fault.to !== 'string' && fault.to.backMs > 0)
        throw new SessionConflict(
          'A running session does not keep earlier states of its store. Send `to`, or `back: 0s` with ' +
            '`loss: ' +
            'restored`.',
        )
      if (SUCCESSION_KINDS.includes(fault.kind) && !this.world.world.controllers.hasStandby)
        throw new SessionConflict(
          `This simulation has one controller. Name ${fault.kind} in the faults of its scenario to have two.`,
        )
      await this.#put({ kind: 'fault', fault: { ...fault, atMs: this.world.world.nowMs }, isHidden, by })
    })
  }

  /** Faults of the scenario, then injected ones. */
  faults(): readonly SessionFault[] {
    const ofScenario = (this.#plan.faults ?? []).map((fault): SessionFault => ({
      atMs: fault.kind === 'swarm' ? fault.fromMs : fault.atMs,
      isHidden: this.#exercise !== null,
      origin: 'scenario',
      by: null,
      fault: { ...fault },
    }))
    const injected = this.#session.inputs.flatMap((input): SessionFault[] =>
      input.kind !== 'fault'
        ? []
        : [
            {
              atMs: input.position.atMs,
              isHidden: input.isHidden,
              origin: 'injected',
              by: input.by,
              fault: { ...input.fault },
            },
          ],
    )
    return [...ofScenario, ...injected]
  }

  /** Throws SessionConflict. */
  exercise(): ExerciseView {
    const { inputs } = this.#session
    return { brief: briefOf(this.#required()), answers: answersIn(inputs), actions: actionsIn(inputs) }
  }

  /** Throws SessionConflict. */
  answer({ question, value, by }: Pick<AnswerInput, 'question' | 'value' | 'by'>): Promise<ExerciseView> {
    return this.#exclusively(async () => {
      if (!this.#required().questions.some(({ id }) => id === question))
        throw new SessionConflict(`The exercise has no question ${JSON.stringify(question)}.`)
      await this.#put({ kind: 'answer', question, value, by })
      return this.exercise()
    })
  }

  /** Runs the exercise to its end. Throws SessionConflict. */
  finish(): Promise<Debrief> {
    return this.#exclusively(async () => {
      const exercise = this.#required()
      this.#pause()
      await this.#session.advanceTo(exercise.endsAtMs)
      return debriefOf(exercise, this.world, this.#session.inputs)
    })
  }

  async branch(snapshot: string | null): Promise<Branch> {
    return this.#exclusively(() => {
      const { position, inputs } = snapshot === null ? this.#session : this.#kept(snapshot)
      return { position, inputs: [...inputs] }
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#exclusively(() => this.#session.close())
  }

  /** Runs `act` while nothing else changes the session. */
  #exclusively<T>(act: () => T | Promise<T>): Promise<T> {
    const acted = this.#last.then(act)
    this.#last = acted.catch(() => {})
    return acted
  }

  async #advance(): Promise<void> {
    while (!this.#isClosed) {
      const isBehind = await this.#exclusively(() => this.#runSlice())
      if (isBehind) await setImmediate()
      else await new Promise((resolve) => setTimeout(resolve, PACE_MS))
    }
  }

  /**
   * Processes some of the due events.
   * @returns true if there are more
   */
  async #runSlice(): Promise<boolean> {
    const goalMs = this.#goalMs()
    if (goalMs === null || this.#isClosed) return false
    const { clock } = this.world.world
    const limit = clock.steps + SLICE_EVENTS
    const isThere = await this.#session.advanceTo(goalMs, () => clock.steps < limit)
    if (isThere && this.#seekMs === goalMs) {
      this.#seekMs = null
      this.#setAnchor()
    }
    if (isThere && goalMs === this.#plan.clock.untilMs) this.#isPaused = true
    return !isThere
  }

  /** Null: paused. */
  #goalMs(): DurationMs | null {
    if (this.#seekMs !== null) return this.#seekMs
    if (this.#isPaused) return null
    const end = this.#plan.clock.untilMs ?? Infinity
    if (this.#speed !== null)
      return Math.min(
        end,
        this.#anchor.virtualMs + Math.floor((performance.now() - this.#anchor.real) * this.#speed),
      )
    // At unlimited speed: to the next due event, with a turn for other work after each slice.
    const { clock, nowMs } = this.world.world
    const next = clock.nextAt()
    return next === null
      ? null
      : Math.min(end, Math.max(nowMs, next - this.#plan.clock.startMs) + FAST_STRETCH_MS)
  }

  #setAnchor(): void {
    this.#anchor = { real: performance.now(), virtualMs: this.world.world.nowMs }
  }

  #required(): Exercise {
    if (this.#exercise === null) throw new SessionConflict('The session is not an exercise.')
    return this.#exercise
  }

  async #put(input: Unplaced): Promise<unknown> {
    if (this.#session.inputs.length >= MAX_INPUTS)
      throw new SessionConflict(`The session has reached the limit of ${MAX_INPUTS} inputs.`)
    return this.#session.put(input)
  }

  #pause(): SessionView {
    this.#isPaused = true
    this.#seekMs = null
    return this.view()
  }

  async #step(count: number): Promise<SessionView> {
    this.#pause()
    for (let taken = 0; taken < count; taken++) if (!(await this.#session.step())) break
    return this.view()
  }

  #setSpeed(factor: number | null): SessionView {
    if (this.world.world.nowMs >= (this.#plan.clock.untilMs ?? Infinity))
      throw new SessionConflict('The session is at its end. Seek back first.')
    this.#speed = factor
    this.#isPaused = false
    this.#setAnchor()
    return this.view()
  }

  /** Answers when the target is reached, or the time limit has passed. */
  async #seek(virtualMs: DurationMs): Promise<SessionView> {
    if (virtualMs > (this.#plan.clock.untilMs ?? Infinity))
      throw new SessionConflict(`The session ends at ${(this.#plan.clock.untilMs as number) / 1000} s.`)
    await this.#exclusively(async () => {
      await this.#session.seek(virtualMs, () => false)
      this.#seekMs = virtualMs
    })
    const until = performance.now() + SEEK_TIMEOUT_MS
    while (this.#seekMs === virtualMs && performance.now() < until)
      await new Promise((resolve) => setTimeout(resolve, 5))
    return this.view()
  }

  async #restore(snapshot: Kept): Promise<SessionView> {
    this.#pause()
    await this.#session.restore(snapshot.position, snapshot.inputs)
    return this.view()
  }

  #kept(id: string): Kept {
    const kept = this.#snapshots.find((each) => each.id === id)
    if (kept === undefined)
      throw new SessionConflict(`The session does not have the snapshot ${JSON.stringify(id)}.`)
    return kept
  }

  #keep(name: string): SessionView {
    if (this.#snapshots.length >= MAX_SNAPSHOTS)
      throw new SessionConflict(`The session has reached the limit of ${MAX_SNAPSHOTS} snapshots.`)
    const { position, inputs } = this.#session
    const stateHash = this.#session.stateHash()
    const id = randomUUID()
    this.#snapshots.push({
      id,
      name,
      virtualMs: position.atMs,
      events: position.events,
      stateHash,
      position,
      inputs: [...inputs],
    })
    return this.view()
  }
}

/** Virtual time per step at unlimited speed. */
const FAST_STRETCH_MS = 60_000
/** A longer seek continues after its answer. */
const SEEK_TIMEOUT_MS = 20_000
