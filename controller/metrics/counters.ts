import type { Microseconds } from '../../protocol/units.ts'

/**
 * The integer counters of semantics 6, in GPU-microseconds; they never decrease. demand = served + queue +
 * swap + compute, exactly. A window is the difference of two readings, a wider scope a sum; percentages are
 * computed last and never averaged.
 */
export interface Counters {
  readonly demand: Microseconds
  readonly served: Microseconds
  readonly queue: Microseconds
  readonly swap: Microseconds
  readonly compute: Microseconds
  /** Time with at least one kernel running; for a task, time in which it was served at all. */
  readonly busy: Microseconds
}

export const ZERO_COUNTERS: Counters = { demand: 0, served: 0, queue: 0, swap: 0, compute: 0, busy: 0 }

export function differenceOf(later: Counters, earlier: Counters): Counters {
  return {
    demand: later.demand - earlier.demand,
    served: later.served - earlier.served,
    queue: later.queue - earlier.queue,
    swap: later.swap - earlier.swap,
    compute: later.compute - earlier.compute,
    busy: later.busy - earlier.busy,
  }
}

export function sumOf(counters: Iterable<Counters>): Counters {
  const sum = { ...ZERO_COUNTERS }
  for (const c of counters) {
    sum.demand += c.demand
    sum.served += c.served
    sum.queue += c.queue
    sum.swap += c.swap
    sum.compute += c.compute
    sum.busy += c.busy
  }
  return sum
}
