/**
 * An order is a list of rules that ends in an id, so that it is total. Source: docs/architecture.md; no bare
 * sort and no locale anywhere, so that all machines agree.
 */

/** Negative: a first. Positive: b first. Zero: this rule does not distinguish them. Never NaN. */
export type Rule<T> = (a: T, b: T) => number

/** The first rule that distinguishes two items decides their order. */
export function firstDifference<T>(...rules: readonly Rule<T>[]): Rule<T> {
  return (a, b) => {
    for (const rule of rules) {
      const difference = rule(a, b)
      if (difference !== 0) return difference
    }
    return 0
  }
}

/** Compares text by UTF-16 code units: the same everywhere, unlike the order of a locale. */
export function byCodeUnits(a: string, b: string): number {
  if (a < b) return -1
  return a > b ? 1 : 0
}
