/**
 * What is kept of a scope and an interval: whole numbers that add up. An interval twice as long, or a scope
 * that holds two others, has the sums of their columns; percentages and averages are made of the sums, last.
 */

/** The place of each column in a row. */
export const COLUMN = {
  /**
   * GPU-time in which at least one kernel ran, ms. All times are of GPUs whose node was heard at both ends of
   * the interval.
   */
  busy: 0,
  /** GPU-time that is known at all, ms. */
  known: 1,
  /** The parts of demand (semantics 6), ms; demand is their sum. */
  served: 2,
  queue: 3,
  swap: 4,
  compute: 5,
  /** How often the levels below were read; of the VRAM, how often there was a GPU to read. */
  readings: 6,
  vramReadings: 7,
  /** Sums over the readings, MiB. */
  physical: 8,
  resident: 9,
  foreign: 10,
  committed: 11,
  effective: 12,
  limit: 13,
  swapped: 14,
  /**
   * Sums over the readings: pending tasks, tasks whose wait counts as demand, entries in the queues of nodes.
   */
  pending: 15,
  waiting: 16,
  entries: 17,
  /** Swaps that ended, and the bytes they moved, MiB. */
  swapOuts: 18,
  swapIns: 19,
  outMib: 20,
  inMib: 21,
} as const

export type ColumnName = keyof typeof COLUMN

export const COLUMNS = Object.keys(COLUMN).length

const PLACES: readonly number[] = Object.values(COLUMN)
const READINGS: readonly number[] = [COLUMN.readings, COLUMN.vramReadings]

/** What of a part counts in the whole as it is: all but how often it was read. */
export const ADDITIVE: readonly number[] = PLACES.filter((place) => !READINGS.includes(place))
