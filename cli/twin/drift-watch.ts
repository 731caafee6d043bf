/**
 * Has every interval foretold before it begins, and measures what came of it. Who calls `tick` every few
 * seconds decides what time is.
 */
import type { Event } from '../../controller/domain/event.ts'
import type { Views } from '../../controller/engine/views.ts'
import type { DriftEntry, DriftReport, NoForecast } from '../../controller/ports/twin.ts'
import { compare, driftReport, withEntry } from '../../simulator/twin/drift.ts'
import type { Foretold } from '../../simulator/twin/drift.ts'
import { IntervalMeter } from './interval-meter.ts'
import type { TwinAnswer } from './twin-job.ts'

/** An interval that was measured so late says nothing: the process slept, or its clock jumped. */
const LATE_MS = 60_000

export interface DriftWatchOptions {
  readonly views: Views
  /** Of the interval that begins now. */
  readonly foretell: () => Promise<TwinAnswer>
}

export class DriftWatch {
  readonly #o: DriftWatchOptions
  #history: readonly DriftEntry[] = []
  #because: NoForecast | null = null
  #meter: IntervalMeter
  /** Of the present interval; null: nothing is foretold of it. */
  #foretold: Foretold | null = null
  #isAsking = false

  constructor(options: DriftWatchOptions) {
    this.#o = options
    this.#meter = new IntervalMeter(options.views)
  }

  record(events: readonly Event[]): void {
    this.#meter.record(events)
  }

  /** An interval may be over, and the next may begin. */
  async tick(): Promise<void> {
    if (this.#isAsking) return
    const now = this.#o.views.now()
    if (this.#foretold !== null && now < this.#foretold.to && now >= this.#foretold.from) return
    if (this.#foretold !== null && now >= this.#foretold.to && now - this.#foretold.to <= LATE_MS) {
      this.#history = withEntry(this.#history, compare(this.#foretold, this.#meter.measure()))
    }
    await this.#begin()
  }

  report(): DriftReport {
    return driftReport(this.#history, this.#because)
  }

  async #begin(): Promise<void> {
    this.#foretold = null
    this.#meter = new IntervalMeter(this.#o.views)
    this.#isAsking = true
    try {
      const answer = await this.#o.foretell()
      if ('reason' in answer) this.#because = answer
      else if ('to' in answer) [this.#foretold, this.#because] = [answer, null]
    } finally {
      this.#isAsking = false
    }
  }
}
