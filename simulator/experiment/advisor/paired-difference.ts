/**
 * The difference of two settings, paired by seed. Runs of one seed have the same tasks, so a difference
 * within a pair is caused by the setting, and the much larger spread between seeds cancels out. The interval
 * is Student's t for the mean of n pairs, two-sided 95%.
 */

export interface PairedDifference {
  readonly pairs: number
  readonly mean: number
  /** Half the width of the 95% interval; null with fewer than two pairs. */
  readonly half_width: number | null
  /** The interval excludes 0. */
  readonly told_apart: boolean
  /**
   * Approximate number of pairs that would make a difference of this size significant; null if it is, or if
   * the mean is 0.
   */
  readonly pairs_needed: number | null
}

/**
 * Two-sided 95 % points of Student's t for 1 to 30 degrees of freedom (NIST/SEMATECH e-Handbook of
 * Statistical Methods, 1.3.6.7.2).
 */
const T_95 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
  2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
]
const NORMAL_95 = 1.96

/** @param differences one for each pair, after minus before */
export function pairedDifference(differences: readonly number[]): PairedDifference {
  const pairs = differences.length
  const mean = pairs === 0 ? 0 : differences.reduce((sum, each) => sum + each, 0) / pairs
  if (pairs < 2) return { pairs, mean, half_width: null, told_apart: false, pairs_needed: null }
  const squares = differences.reduce((sum, each) => sum + (each - mean) * (each - mean), 0)
  const deviation = Math.sqrt(squares / (pairs - 1))
  const half_width = ((T_95[pairs - 2] ?? NORMAL_95) * deviation) / Math.sqrt(pairs)
  const told_apart = Math.abs(mean) > half_width
  return {
    pairs,
    mean,
    half_width,
    told_apart,
    pairs_needed: told_apart || mean === 0 ? null : pairsNeeded(mean, deviation),
  }
}

/** From the n at which the interval of the normal distribution is as wide as the difference. */
function pairsNeeded(mean: number, deviation: number): number {
  const ratio = (NORMAL_95 * deviation) / mean
  return Math.ceil(ratio * ratio) + 1
}
