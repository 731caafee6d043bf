/**
 * The columns of a scope and interval: integers that add up. An interval twice as long, or a scope that
 * contains two others, has the sums of their columns; percentages and averages are computed from the sums,
 * last.
 */

/** Position of each column in a row. */
export const COLUMN = {
  /**
   * GPU-time with at least one kernel running, ms. All times are of GPUs whose node was heard at both ends of
   * the interval.
   */
  busy: 0,
  /** Known GPU-time, ms. */
  known: 1,
  /** The parts of demand (semantics 6), ms; demand is their sum. */
  served: 2,
  queue: 3,
  swap: 4,
  compute: 5,
  /** Number of readings of the levels below; for VRAM, of readings with a GPU. */
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
  /** Completed swaps, and the MiB they moved. */
  swapOuts: 18,
  swapIns: 19,
  outMib: 20,
  inMib: 21,
  /** Duration of the copies that ended, ms. */
  copy: 22,
  /** Returns of swapped-out tasks that wanted the GPU: up to each of WAKE_BOUNDS_S, and longer ones. */
  wake0: 23,
  wake1: 24,
  wake2: 25,
  wake3: 26,
  wake4: 27,
  wake5: 28,
  wake6: 29,
  wake7: 30,
  wake8: 31,
  wake9: 32,
  wake10: 33,
  wake11: 34,
  wake12: 35,
  wakeLonger: 36,
} as const

export type ColumnName = keyof typeof COLUMN

/** Seconds. */
export const WAKE_BOUNDS_S = [0.25, 0.5, 1, 1.5, 2, 3, 5, 7.5, 10, 20, 30, 60, 300] as const
export const FIRST_WAKE_COLUMN = COLUMN.wake0
export const WAKE_COLUMNS = (Object.keys(COLUMN) as readonly ColumnName[]).filter(
  (name) => COLUMN[name] >= FIRST_WAKE_COLUMN,
)

/** An archived row has at least these columns. Columns at its end that are 0 for every scope are left out. */
export const ARCHIVED_COLUMNS = 22

export const COLUMNS = Object.keys(COLUMN).length

const PLACES: readonly number[] = Object.values(COLUMN)
const READINGS: readonly number[] = [COLUMN.readings, COLUMN.vramReadings]

/** Columns of a part that are added to the whole: all but the number of readings. */
export const ADDITIVE: readonly number[] = PLACES.filter((place) => !READINGS.includes(place))
