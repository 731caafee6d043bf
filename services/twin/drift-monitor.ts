/**
 * Forecasts every interval before it starts, and measures the result. The caller of `tick` (every few
 * seconds) determines the time.
 */
import { differenceOf, type Counters } from '../../controller/metrics/counters.ts'
import { starvationPercent, utilizationPercent } from '../../controller/metrics/starvation.ts'
import type { Event } from '../../controller/model/event.ts'
import type { DriftEntry, DriftReport, NoForecast, TwinMetric } from '../../controller/ports/twin.ts'
import type { Views } from '../../controller/query/views.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import { compare, driftReport, withEntry, type IntervalPrediction } from '../../simulator/twin/drift.ts'
import type { TwinAnswer } from './twin-job.ts'

/** A measurement this late is discarded: the process was suspended, or its clock jumped. */
const LATE_MS = 60_000

interface DriftMonitorOptions {
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
  #predicted: IntervalPrediction | null = null
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

class IntervalMeter {
  readonly #views: Views
  readonly from: Instant
  readonly #counters: Counters
  readonly #swapOuts: number
  #started = 0
  #waitedMs: DurationMs = 0

  /** Starts the interval. */
  constructor(views: Views) {
    this.#views = views
    this.from = views.now()
    this.#counters = views.clusterCounters()
    this.#swapOuts = views.totals().swapOuts
  }

  record(events: readonly Event[]): void {
    for (const { kind, taskId, at } of events) {
      if (kind !== 'task_started' || taskId === null) continue
      const task = this.#views.openTask(taskId)
      if (task === undefined || task.firstStartedAt !== at) continue
      this.#started += 1
      this.#waitedMs += at - task.spec.submittedAt
    }
  }

  /** Ends the interval. */
  measure(): Readonly<Record<TwinMetric, number | null>> {
    const now = this.#views.now()
    const windowMs = now - this.from
    const window = differenceOf(this.#views.clusterCounters(), this.#counters)
    const { swapOuts, gpus } = this.#views.totals()
    let [count, waitedMs] = [this.#started, this.#waitedMs]
    for (const task of this.#views.openTasks()) {
      if (task.firstStartedAt === null)
        [count, waitedMs] = [count + 1, waitedMs + now - task.spec.submittedAt]
    }
    return {
      queue_wait_s: count === 0 ? null : waitedMs / count / 1000,
      starvation_percent: starvationPercent(window).total,
      utilization_percent: utilizationPercent(window, windowMs, gpus),
      swap_outs_per_hour: windowMs <= 0 ? null : ((swapOuts - this.#swapOuts) * 3_600_000) / windowMs,
    }
  }
}
