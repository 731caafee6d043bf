/** How long something that tells its progress will still take. Pure. */

export interface Seen {
  /** Milliseconds of any clock that goes on. */
  readonly at: number
  /** 0 to 1. */
  readonly progress: number
}

/** Less than this says nothing yet. */
const LEAST_MS = 1_000

/** Seconds, at the pace since it was first seen; null: not known. */
export function secondsLeft(first: Seen, last: Seen): number | null {
  const [passed, done] = [last.at - first.at, last.progress - first.progress]
  if (last.progress >= 1) return 0
  return passed < LEAST_MS || done <= 0 ? null : ((1 - last.progress) * passed) / done / 1000
}
