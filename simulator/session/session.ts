/**
 * A simulated world that somebody drives: by single events, by time, back and forth. Going back is replaying
 * from the start with the same inputs, so that whoever comes to an instant again finds the same state. Who
 * keeps pace with real time, and who asks the REST interface, are arguments.
 */
import type { DurationMs } from '../../protocol/units.ts'
import type { Position, SessionInput, SteppableWorld } from './steppable-world.ts'

export interface SessionOptions<I extends SessionInput> {
  /** A world at its start, every time the same. */
  readonly open: () => Promise<SteppableWorld<I>>
  /** What was done to it before, by position: of a session that goes on from another. */
  readonly inputs?: readonly I[]
}

/** Calls come one after the other: the next when the last has resolved. */
type WithoutPosition<I> = I extends unknown ? Omit<I, 'position'> : never

export class Session<I extends SessionInput> {
  readonly #open: () => Promise<SteppableWorld<I>>
  #stage: SteppableWorld<I>
  /** By position; those from `#applied` on lie ahead. */
  #inputs: I[]
  #applied = 0
  /** How often the scenario's operator has acted. */
  #served = 0

  static async open<I extends SessionInput>({ open, inputs = [] }: SessionOptions<I>): Promise<Session<I>> {
    return new Session(open, await open(), inputs)
  }

  private constructor(
    open: () => Promise<SteppableWorld<I>>,
    stage: SteppableWorld<I>,
    inputs: readonly I[],
  ) {
    this.#open = open
    this.#stage = stage
    this.#inputs = [...inputs]
  }

  get stage(): SteppableWorld<I> {
    return this.#stage
  }

  get position(): Position {
    const { clock, nowMs } = this.#stage.world
    return { events: clock.steps, served: this.#served, atMs: nowMs }
  }

  /** What was done so far, in order. */
  get inputs(): readonly I[] {
    return this.#inputs.slice(0, this.#applied)
  }

  /** How many inputs lie ahead, to be done again when time comes to them. */
  get inputsAhead(): number {
    return this.#inputs.length - this.#applied
  }

  /** Equal for two sessions that have come to the same point in the same way. */
  stateHash(): string {
    return this.#stage.stateHash(this.position)
  }

  /**
   * One entry of the event queue: a message, a timer, an arrival, a cycle of decisions. What is done from
   * outside, with its answer, counts as one.
   * @returns false when nothing is left that could happen
   */
  async step(): Promise<boolean> {
    const { world } = this.#stage
    if (await this.#doOutside(null)) return true
    const goal = world.clock.steps + 1
    await world.runUntil(null, () => world.clock.steps >= goal)
    return world.clock.steps >= goal
  }

  /**
   * Everything up to and including that time since the start; inputs that lie ahead are done when it comes to
   * them.
   * @param mayGoOn asked after every event; false stops on the way, and the rest is for the next call
   * @returns whether it got there
   */
  async advanceTo(atMs: DurationMs, mayGoOn: () => boolean = () => true): Promise<boolean> {
    const { world, agenda } = this.#stage
    while (mayGoOn()) {
      if (await this.#doOutside(atMs)) continue
      const next = this.#ahead
      // Nothing happened between the last event and that input.
      if (next !== undefined && this.#isDue(next)) {
        this.#passTo(atMs)
        return true
      }
      const isHeldUp = (): boolean => agenda.isDue || (next !== undefined && this.#isDue(next)) || !mayGoOn()
      await world.runUntil(atMs, isHeldUp)
      if (!isHeldUp()) return true
    }
    return false
  }

  /** Does it now, and forgets what lay ahead: from here on things go another way. */
  async put(input: WithoutPosition<I>): Promise<unknown> {
    const placed = { ...input, position: this.position } as unknown as I
    this.#inputs = [...this.#inputs.slice(0, this.#applied), placed]
    this.#applied += 1
    return this.#stage.apply(placed)
  }

  /** Takes back the record of the last input, which was refused and has changed nothing. */
  forgetLast(): void {
    this.#applied -= 1
    this.#inputs.splice(this.#applied, 1)
  }

  /** Back to that time, or forth. @returns as `advanceTo` */
  async seek(atMs: DurationMs, mayGoOn?: () => boolean): Promise<boolean> {
    if (atMs < this.#stage.world.nowMs) await this.#restart()
    return this.advanceTo(atMs, mayGoOn)
  }

  /**
   * To a position that this session, or the one it goes on from, has been at, with the inputs that there were
   * then.
   */
  async restore({ events, served, atMs }: Position, inputs: readonly I[]): Promise<void> {
    this.#inputs = [...inputs]
    await this.#restart()
    const { world, agenda } = this.#stage
    for (;;) {
      if (await this.#doOutside(null)) continue
      if (world.clock.steps >= events && this.#served >= served) break
      const goal = Math.min(events, this.#ahead?.position.events ?? events)
      const before = world.clock.steps
      await world.runUntil(null, () => agenda.isDue || world.clock.steps >= goal)
      if (world.clock.steps === before && !agenda.isDue) break
    }
    this.#passTo(atMs)
  }

  async close(): Promise<void> {
    await this.#stage.close()
  }

  async #restart(): Promise<void> {
    const old = this.#stage
    this.#stage = await this.#open()
    this.#applied = 0
    this.#served = 0
    await old.close()
  }

  get #ahead(): I | undefined {
    return this.#inputs[this.#applied]
  }

  /** What is to be done from outside before the next event, unless it lies after that time. */
  async #doOutside(untilMs: DurationMs | null): Promise<boolean> {
    const { agenda } = this.#stage
    const input = this.#ahead
    const isNext = input !== undefined && this.#isDue(input)
    if (isNext && (untilMs === null || input.position.atMs <= untilMs)) {
      this.#passTo(input.position.atMs)
      this.#applied += 1
      await this.#stage.apply(input)
      return true
    }
    if (isNext || !agenda.isDue) return false
    await agenda.serve()
    this.#served += 1
    return true
  }

  #isDue({ position }: I): boolean {
    return this.#stage.world.clock.steps >= position.events && this.#served >= position.served
  }

  #passTo(atMs: DurationMs): void {
    const { clock, plan } = this.#stage.world
    clock.advanceTo(plan.clock.startMs + atMs)
  }
}
