/**
 * An interactive simulated world: it advances by single events or by time, and goes back. Going back replays
 * the run from the start with the same inputs, so the same instant always has the same state. Pacing and the
 * client of the REST API are arguments.
 */
import type { DurationMs } from '../../protocol/units.ts'
import type { Position, SessionInput, SteppableWorld } from './steppable-world.ts'

export interface SessionOptions<I extends SessionInput> {
  /** Returns a world at its start, always the same. */
  readonly open: () => Promise<SteppableWorld<I>>
  /** Earlier inputs, by position: for a session that continues another one. */
  readonly inputs?: readonly I[]
}

/** Calls must not overlap: the next comes when the last has resolved. */
type WithoutPosition<I> = I extends unknown ? Omit<I, 'position'> : never

export class Session<I extends SessionInput> {
  readonly #open: () => Promise<SteppableWorld<I>>
  #stage: SteppableWorld<I>
  /** By position; those from `#applied` on are in the future. */
  #inputs: I[]
  #applied = 0
  /** Number of actions of the scenario's operator so far. */
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

  /** Inputs so far, in order. */
  get inputs(): readonly I[] {
    return this.#inputs.slice(0, this.#applied)
  }

  /** Number of future inputs, which are applied when their time comes. */
  get inputsAhead(): number {
    return this.#inputs.length - this.#applied
  }

  /** Equal for two sessions that reached the same position in the same way. */
  stateHash(): string {
    return this.#stage.stateHash(this.position)
  }

  /**
   * Runs one entry of the event queue: a message, a timer, an arrival, a decision cycle. An input with its
   * answer counts as one.
   * @returns false if nothing is left that could happen
   */
  async step(): Promise<boolean> {
    const { world } = this.#stage
    if (await this.#doOutside(null)) return true
    const goal = world.clock.steps + 1
    await world.runUntil(null, () => world.clock.steps >= goal)
    return world.clock.steps >= goal
  }

  /**
   * Runs everything up to and including that time since the start, with the future inputs on the way.
   * @param mayGoOn called after every event; false stops, and the next call continues
   * @returns whether the time was reached
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

  /** Applies an input now, and discards the future inputs. */
  async put(input: WithoutPosition<I>): Promise<unknown> {
    const placed = { ...input, position: this.position } as unknown as I
    this.#inputs = [...this.#inputs.slice(0, this.#applied), placed]
    this.#applied += 1
    return this.#stage.apply(placed)
  }

  /** Removes the last input, which was refused and has changed nothing. */
  forgetLast(): void {
    this.#applied -= 1
    this.#inputs.splice(this.#applied, 1)
  }

  /**
   * Moves back or forward to that time.
   * @returns as `advanceTo`
   */
  async seek(atMs: DurationMs, mayGoOn?: () => boolean): Promise<boolean> {
    if (atMs < this.#stage.world.nowMs) await this.#restart()
    return this.advanceTo(atMs, mayGoOn)
  }

  /**
   * Moves to an earlier position of this session, or of the one that it continues, with the inputs of that
   * time.
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

  /** The next input that is due before the next event, unless it is after that time. */
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
