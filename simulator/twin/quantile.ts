/**
 * Nearest rank: the smallest value that at least p % of all do not exceed; null without values.
 * @param rising sorted
 */
export function quantileOf(rising: readonly number[], percent: number): number | null {
  return rising[Math.max(0, Math.ceil((percent / 100) * rising.length) - 1)] ?? null
}

export function risingOf(values: readonly number[]): readonly number[] {
  return [...values].sort((a, b) => a - b)
}
