/** How measured times are reported. */

/** @param times in ascending order @returns the time that this share of them do not exceed; 0 without any */
export function quantile(times: readonly number[], share: number): number {
  return times[Math.ceil(times.length * share) - 1] ?? 0
}

/** Median, p95 and maximum. @param times in ascending order */
export function spread(times: readonly number[], digits = 0): string {
  const at = (share: number) => quantile(times, share).toFixed(digits)
  return `median ${at(0.5)} ms, p95 ${at(0.95)} ms, worst ${at(1)} ms`
}
