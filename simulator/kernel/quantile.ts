/**
 * Nearest-rank quantiles of a few values: the smallest value that at least p percent of all do not exceed
 * (docs/simulation-model.md).
 */

/** @param sorted rising, not empty */
export function nearestRank(sorted: readonly number[], percent: number): number {
  return sorted[Math.max(0, Math.ceil((percent * sorted.length) / 100) - 1)] as number
}
