/** A workload as time comes to its tasks: each is submitted at its instant, and the next one is asked for. */
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

  /** From here on; `pull` asks for the first. */
  begin(source: ArrivalSource): void {
    this.#source = source
  }

  /** All have arrived. */
  get isOver(): boolean {
    return this.#source === null && this.#next === null
  }

  /** Nobody knows who comes next. */
  get lacksNext(): boolean {
    return this.#source !== null && this.#next === null
  }

  /** Nor will, before more has been read. */
  get needsFill(): boolean {
    return this.#source !== null && this.#next === null && this.#source.needsFill
  }

  async fill(): Promise<void> {
    await this.#source?.fill()
  }

  /** Asks who comes next, where that is not known and nothing has to be read for it. */
  pull(): void {
    if (this.#takeNext() !== null) this.#plan()
  }

  /** Everything that arrives in this instant, then the timer for the next. */
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
