/**
 * Forecasts every interval before it starts, and measures the result. The caller of `tick` (every few
 * seconds) determines the time.
 */
import type { Event } from '../../controller/model/event.ts'
import type { Views } from '../../controller/query/views.ts'
import type { DriftEntry, DriftReport, NoForecast } from '../../controller/ports/twin.ts'
import { compare, driftReport, withEntry } from '../../simulator/twin/drift.ts'
import type { Foretold } from '../../simulator/twin/drift.ts'
import { IntervalMeter } from './interval-meter.ts'
import type { TwinAnswer } from './twin-job.ts'

/** A measurement this late is discarded: the process was suspended, or its clock jumped. */
const LATE_MS = 60_000

export interface DriftMonitorOptions {
  readonly views: Views
  /** Forecasts the interval that starts now. */
  readonly forecast: () => Promise<TwinAnswer>
}

export class DriftMonitor {
  readonly #options: DriftMonitorOptions
  #history: readonly DriftEntry[] = []
  #unavailableBecause: NoForecast | null = null
  #meter: IntervalMeter
  /** Forecast of the current interval; null: none. */
  #predicted: Foretold | null = null
  #isAsking = false

  constructor(options: DriftMonitorOptions) {
    this.#options = options
    this.#meter = new IntervalMeter(options.views)
  }

  record(events: readonly Event[]): void {
    this.#meter.record(events)
  }

  /** Ends the interval if it is over, and starts the next. */
  async tick(): Promise<void> {
    if (this.#isAsking) return
    const now = this.#options.views.now()
    if (this.#predicted !== null && now < this.#predicted.to && now >= this.#predicted.from) return
    if (this.#predicted !== null && now >= this.#predicted.to && now - this.#predicted.to <= LATE_MS) {
      this.#history = withEntry(this.#history, compare(this.#predicted, this.#meter.measure()))
    }
    await this.#begin()
  }

  report(): DriftReport {
    return driftReport(this.#history, this.#unavailableBecause)
  }

  async #begin(): Promise<void> {
    this.#predicted = null
    this.#meter = new IntervalMeter(this.#options.views)
    this.#isAsking = true
    try {
      const answer = await this.#options.forecast()
      if ('reason' in answer) this.#unavailableBecause = answer
      else if ('to' in answer) [this.#predicted, this.#unavailableBecause] = [answer, null]
    } finally {
      this.#isAsking = false
    }
  }
}
