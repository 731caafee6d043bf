/**
 * The course of a run: the cluster's counters and state, sampled at intervals. Reading does not influence
 * decisions, so the digest stays the same.
 */
import type { DurationMs } from '../../protocol/units.ts'
import { differenceOf, ZERO_COUNTERS } from '../../controller/metrics/counters.ts'
import type { Counters } from '../../controller/metrics/counters.ts'
import { starvationPercent, utilizationPercent } from '../../controller/metrics/starvation.ts'
import type { World } from '../world/world.ts'
import { csvOf, seconds } from '../results/csv.ts'

/** State at the end of an interval; counters and swaps are totals since the start. */
interface Reading {
  readonly atMs: DurationMs
  readonly counters: Counters
  readonly gpus: number
  readonly pending: number
  readonly placed: number
  readonly residentMib: number
  readonly committedMib: number
  readonly swappedMib: number
  readonly swapOuts: number
  readonly movedMib: number
}

const FIRST_INTERVAL_MS: DurationMs = 10_000
/**
 * Default maximum number of rows. When it is reached, every other sample is dropped and the interval doubles.
 */
const MAX_ROWS = 2048

export class SeriesSampler {
  readonly #maxRows: number
  #readings: Reading[] = []
  #intervalMs = FIRST_INTERVAL_MS

  /** @param maxRows even: half of them remain when the maximum is reached */
  constructor(maxRows = MAX_ROWS) {
    this.#maxRows = maxRows
  }

  /** Time of the next sample, since the start of the run. */
  get nextAtMs(): DurationMs {
    return (this.#readings.length + 1) * this.#intervalMs
  }

  take(world: World): void {
    this.#readings.push(readingOf(world))
    if (this.#readings.length < this.#maxRows) return
    this.#readings = this.#readings.filter((_, index) => index % 2 === 1)
    this.#intervalMs *= 2
  }

  /** The rest of the run is the last interval. */
  finish(world: World): void {
    if (world.nowMs > (this.#readings.at(-1)?.atMs ?? 0)) this.#readings.push(readingOf(world))
  }

  /** One row per interval; `t_s` is its end. */
  csv(): string {
    const rows = this.#readings.map((reading, index) => rowOf(reading, this.#readings[index - 1] ?? START))
    return csvOf(COLUMNS, rows)
  }
}

function readingOf(world: World): Reading {
  const { views } = world.controller
  const totals = views.totals()
  const counts = views.counts()
  const swaps = world.controllers.swapTotals()
  return {
    atMs: world.nowMs,
    counters: world.controllers.counters(),
    gpus: totals.gpus,
    pending: counts.pending,
    placed: counts.assigned + counts.running + counts.unreachable,
    residentMib: totals.residentMib,
    committedMib: totals.committedMib,
    swappedMib: totals.swappedMib,
    swapOuts: swaps.swapOuts,
    movedMib: swaps.swappedOutMib + swaps.swappedInMib,
  }
}

const START: Reading = {
  atMs: 0,
  counters: ZERO_COUNTERS,
  gpus: 0,
  pending: 0,
  placed: 0,
  residentMib: 0,
  committedMib: 0,
  swappedMib: 0,
  swapOuts: 0,
  movedMib: 0,
}

const COLUMNS = [
  't_s',
  'utilization_percent',
  'starvation_percent',
  'starvation_queue_percent',
  'starvation_swap_percent',
  'starvation_compute_percent',
  'tasks_pending',
  'tasks_placed',
  'vram_resident_mib',
  'vram_committed_mib',
  'vram_swapped_mib',
  'swap_outs',
  'swapped_mib',
]

function rowOf(reading: Reading, before: Reading): readonly (string | number)[] {
  const window = differenceOf(reading.counters, before.counters)
  const starvation = starvationPercent(window)
  return [
    seconds(reading.atMs),
    (utilizationPercent(window, reading.atMs - before.atMs, reading.gpus) ?? 0).toFixed(3),
    starvation.total.toFixed(3),
    starvation.queue.toFixed(3),
    starvation.swap.toFixed(3),
    starvation.compute.toFixed(3),
    reading.pending,
    reading.placed,
    reading.residentMib,
    reading.committedMib,
    reading.swappedMib,
    reading.swapOuts - before.swapOuts,
    reading.movedMib - before.movedMib,
  ]
}
