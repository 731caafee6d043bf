/** Estimates the time left from the progress. Pure. */

export interface Observation {
  /** Milliseconds of any monotonic clock. */
  readonly at: number
  /** 0 to 1. */
  readonly progress: number
}

/** Shorter observations give no estimate. */
const MIN_OBSERVED_MS = 1_000

/** Seconds left, at the pace since the first observation; null: unknown. */
export function secondsLeft(first: Observation, last: Observation): number | null {
  const [passed, done] = [last.at - first.at, last.progress - first.progress]
  if (last.progress >= 1) return 0
  return passed < MIN_OBSERVED_MS || done <= 0 ? null : ((1 - last.progress) * passed) / done / 1000
}
