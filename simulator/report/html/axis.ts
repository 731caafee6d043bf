/** A scale for a chart: round numbers that cover the values. */

export interface Axis {
  readonly from: number
  readonly to: number
  /** Rising, from `from` to `to`. */
  readonly ticks: readonly number[]
  /** Decimal places that distinguish two ticks. */
  readonly digits: number
}

const WANTED_TICKS = 6
const STEPS = [1, 2, 5, 10]

/** From 0, or below, to the largest value; equal values get a scale too. */
export function axisOf(values: readonly number[]): Axis {
  const low = Math.min(0, ...values)
  const high = Math.max(...values, low + Number.MIN_VALUE)
  const span = high - low > 1e-9 ? high - low : 1
  const { step, digits } = roundStep(span / (WANTED_TICKS - 1))
  const first = Math.floor(low / step)
  const last = Math.max(first + 1, Math.ceil((low + span) / step - 1e-9))
  const ticks = Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step)
  return { from: first * step, to: last * step, ticks, digits }
}

/** The smallest of 1, 2, 5, 10 times a power of ten that is not below the value. */
function roundStep(least: number): { readonly step: number; readonly digits: number } {
  let [unit, digits] = [1, 0]
  while (unit * 10 <= least) unit *= 10
  while (unit > least) {
    digits += 1
    unit = 1 / powerOfTen(digits)
  }
  const factor = STEPS.find((each) => each * unit >= least * (1 - 1e-12)) ?? 10
  return { step: factor * unit, digits: factor === 10 ? Math.max(0, digits - 1) : digits }
}

function powerOfTen(exponent: number): number {
  let power = 1
  for (let i = 0; i < exponent; i++) power *= 10
  return power
}
