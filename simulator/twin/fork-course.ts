/** The course of a fork: its metrics, by equal intervals. Reading does not influence decisions. */
import { differenceOf, type Counters } from '../../controller/metrics/counters.ts'
import { starvationPercent, utilizationPercent } from '../../controller/metrics/starvation.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { World } from '../world/world.ts'

/** Over the whole time, or an interval. Null: no value. */
export interface ForkFigures {
  /** Mean over tasks that waited for their first start during the time: until the start, or so far. */
  readonly queueWaitS: number | null
  readonly starvationPercent: number
  readonly utilizationPercent: number
  readonly swapOutsPerHour: number
}

interface Totals {
  readonly atMs: DurationMs
  readonly counters: Counters
  readonly swapOuts: number
  readonly started: number
  readonly waitedMs: DurationMs
}

export class ForkCourse {
  readonly #world: World
  readonly #intervals: ForkFigures[] = []
  #before: Totals

  constructor(world: World) {
    this.#world = world
    this.#before = totalsOf(world)
  }

  /** In order; the first begins at creation. */
  get intervals(): readonly ForkFigures[] {
    return this.#intervals
  }

  /** Ends an interval and begins the next. */
  cut(): void {
    const now = totalsOf(this.#world)
    const before = this.#before
    const windowMs = now.atMs - before.atMs
    const window = differenceOf(now.counters, before.counters)
    this.#intervals.push({
      queueWaitS: meanWaitS(this.#world, now.started - before.started, now.waitedMs - before.waitedMs),
      starvationPercent: starvationPercent(window).total,
      utilizationPercent:
        utilizationPercent(window, windowMs, this.#world.controller.views.totals().gpus) ?? 0,
      swapOutsPerHour: windowMs <= 0 ? 0 : ((now.swapOuts - before.swapOuts) * 3_600_000) / windowMs,
    })
    this.#before = now
  }
}

/** Tasks that have started in the examined time, and tasks that have not started yet. */
export function meanWaitS(world: World, started: number, waitedMs: DurationMs): number | null {
  let [count, sumMs] = [started, waitedMs]
  for (const { submittedAt, startedAt } of world.collector.open()) {
    if (startedAt === null) [count, sumMs] = [count + 1, sumMs + world.clock.now() - submittedAt]
  }
  return count === 0 ? null : sumMs / count / 1000
}

function totalsOf(world: World): Totals {
  const { count, sum } = world.collector.queueWaitMs
  return {
    atMs: world.nowMs,
    counters: world.controllers.counters(),
    swapOuts: world.controllers.swapTotals().swapOuts,
    started: count,
    waitedMs: sum,
  }
}
