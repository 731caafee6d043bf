/**
 * How an order is written here: a list of rules, ending in an id, so that it is total.
 * Source: docs/architecture.md; no bare sort and no locale anywhere, for the same answer on every machine.
 */

/** Negative: a first. Positive: b first. Zero: this rule does not tell them apart. Never NaN. */
export type Rule<T> = (a: T, b: T) => number

/** The order in which the first rule that tells two apart decides. */
export function firstDifference<T>(...rules: readonly Rule<T>[]): Rule<T> {
  return (a, b) => {
    for (const rule of rules) {
      const difference = rule(a, b)
      if (difference !== 0) return difference
    }
    return 0
  }
}

/** Text by UTF-16 code units: the same everywhere, unlike any locale's order. */
export function byCodeUnits(a: string, b: string): number {
  if (a < b) return -1
  return a > b ? 1 : 0
}
