/** Measures an interval by the figures that the twin forecasts, with the same definitions (docs/twin.md). */
import type { Event } from '../../controller/model/event.ts'
import type { Views } from '../../controller/query/views.ts'
import { differenceOf, type Counters } from '../../controller/metrics/counters.ts'
import { starvationPercent, utilizationPercent } from '../../controller/metrics/starvation.ts'
import type { TwinMetric } from '../../controller/ports/twin.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'

export class IntervalMeter {
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
