/**
 * Growth of the cluster's counters in an interval, for nodes heard at both ends of it, and the time of their
 * GPUs.
 */
import type { DurationMs, Microseconds } from '../../protocol/units.ts'
import type { Counters } from '../metrics/counters.ts'
import { COLUMN } from './columns.ts'

export interface Interval {
  readonly counters: { -readonly [K in keyof Counters]: Counters[K] }
  knownUs: Microseconds
}

export function newInterval(): Interval {
  return { counters: { demand: 0, served: 0, queue: 0, swap: 0, compute: 0, busy: 0 }, knownUs: 0 }
}

/** Adds one GPU: its demand is what it served and what it owed. Queue demand is counted elsewhere. */
export function addTo(interval: Interval, later: Counters, earlier: Counters, forMs: DurationMs): void {
  const sum = interval.counters
  const [served, swap, compute] = [
    later.served - earlier.served,
    later.swap - earlier.swap,
    later.compute - earlier.compute,
  ]
  sum.busy += later.busy - earlier.busy
  sum.served += served
  sum.swap += swap
  sum.compute += compute
  sum.demand += served + swap + compute
  interval.knownUs += forMs * 1000
}

/** The columns of a row, in microseconds. */
export function intervalOf(row: Float64Array): Interval {
  const us = (name: 'busy' | 'known' | 'served' | 'queue' | 'swap' | 'compute') =>
    1000 * (row[COLUMN[name]] as number)
  const [served, queue, swap, compute] = [us('served'), us('queue'), us('swap'), us('compute')]
  return {
    counters: { demand: served + queue + swap + compute, served, queue, swap, compute, busy: us('busy') },
    knownUs: us('known'),
  }
}

export function sumOfIntervals(...intervals: readonly Interval[]): Interval {
  const sum = newInterval()
  for (const { counters, knownUs } of intervals) {
    for (const name of NAMES) sum.counters[name] += counters[name]
    sum.knownUs += knownUs
  }
  return sum
}

const NAMES = [
  'demand',
  'served',
  'queue',
  'swap',
  'compute',
  'busy',
] as const satisfies readonly (keyof Counters)[]
