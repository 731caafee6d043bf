/** Submits a workload over time: each task at its instant. */
import { RANK_ARRIVAL } from '../../controller/ports/clock.ts'
import type { Instant } from '../../protocol/units.ts'
import type { ArrivalSource } from '../scenario/arrivals.ts'
import type { SimTask } from '../scenario/scenario.ts'
import type { SimClock, SimTimer } from '../kernel/virtual-clock.ts'

export class ArrivalFeed {
  readonly #clock: SimClock
  readonly #startedAt: Instant
  readonly #submit: (task: SimTask) => void
  readonly #timer: SimTimer
  #source: ArrivalSource | null = null
  #next: SimTask | null = null

  /** The world begins now. */
  constructor(clock: SimClock, submit: (task: SimTask) => void) {
    this.#clock = clock
    this.#startedAt = clock.now()
    this.#submit = submit
    this.#timer = clock.timer(this.#arrive, undefined, RANK_ARRIVAL)
  }

  /** Starts the feed; `pull` reads the first task. */
  begin(source: ArrivalSource): void {
    this.#source = source
  }

  /** All tasks have arrived. */
  get isOver(): boolean {
    return this.#source === null && this.#next === null
  }

  /** The next arrival has not been read yet. */
  get lacksNext(): boolean {
    return this.#source !== null && this.#next === null
  }

  /** The source must be filled before the next task can be read. */
  get needsFill(): boolean {
    return this.#source !== null && this.#next === null && this.#source.needsFill
  }

  async fill(): Promise<void> {
    await this.#source?.fill()
  }

  /** Reads the next arrival, if it is unknown and the source need not be filled. */
  pull(): void {
    if (this.#takeNext() !== null) this.#plan()
  }

  /** Submits everything that arrives in this instant, then sets the timer for the next. */
  readonly #arrive = (): void => {
    const now = this.#clock.now() - this.#startedAt
    while (this.#next !== null && this.#next.at <= now) {
      this.#submit(this.#next)
      this.#next = null
      if (this.#takeNext() === null) return
    }
    this.#plan()
  }

  #takeNext(): SimTask | null {
    const source = this.#source
    if (source === null || source.needsFill) return null
    this.#next = source.next()
    if (this.#next === null) this.#source = null
    return this.#next
  }

  #plan(): void {
    if (this.#next !== null) this.#timer.set(this.#startedAt + this.#next.at)
  }
}
