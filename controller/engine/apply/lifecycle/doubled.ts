import type { DurationMs } from '../../../../protocol/units.ts'

/** Returns `first`, doubled for each time after the first, at most `most`. */
export function doubled(first: DurationMs, times: number, most: DurationMs): DurationMs {
  let ms = first
  for (let time = 1; time < times && ms < most; time++) ms *= 2
  return Math.min(ms, most)
}
