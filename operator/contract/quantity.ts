/**
 * Quantities of Kubernetes ("8Gi", "1500M", "1.5Gi", "1e9"), read exactly. Grammar: the reference of the API,
 * common definitions, Quantity.
 */
import type { Mib } from '../../protocol/units.ts'

const QUANTITY = /^([+-]?)(\d+\.?\d*|\.\d+)(?:(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E)|[eE]([+-]?\d{1,3}))?$/
/** Longer ones are not amounts of memory. */
const MAX_LENGTH = 64
/** No amount of memory needs more; 10^30 bytes do not exist. */
const MAX_EXPONENT = 30

const BINARY: Readonly<Record<string, bigint>> = {
  Ki: 1n << 10n,
  Mi: 1n << 20n,
  Gi: 1n << 30n,
  Ti: 1n << 40n,
  Pi: 1n << 50n,
  Ei: 1n << 60n,
}
const DECIMAL: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
}

const MIB = 1n << 20n

/** A fraction of whole numbers, `denominator` above 0. */
interface Fraction {
  readonly numerator: bigint
  readonly denominator: bigint
}

/** Returns the whole number of bytes, rounded up; null for a text that is not a quantity. */
export function quantityBytes(text: string): bigint | null {
  const fraction = fractionOf(text)
  return fraction === null ? null : ceilOf(fraction.numerator, fraction.denominator)
}

/** Returns MiB, rounded up; null for no quantity, and for more than a number holds exactly. */
export function quantityMib(text: string): Mib | null {
  const fraction = fractionOf(text)
  if (fraction === null) return null
  const mib = Number(ceilOf(fraction.numerator, fraction.denominator * MIB))
  return Number.isSafeInteger(mib) ? mib : null
}

function fractionOf(text: string): Fraction | null {
  if (text.length > MAX_LENGTH) return null
  const [, sign, digits, suffix = '', exponentText] = QUANTITY.exec(text) ?? []
  if (digits === undefined) return null
  const [whole = '', decimals = ''] = digits.split('.')
  const unscaled = BigInt(`${whole}${decimals}`) * (sign === '-' ? -1n : 1n)
  const binary = BINARY[suffix]
  if (binary !== undefined) return { numerator: unscaled * binary, denominator: tenTo(decimals.length) }
  const exponent = exponentText === undefined ? (DECIMAL[suffix] ?? 0) : Number(exponentText)
  if (Math.abs(exponent) > MAX_EXPONENT) return null
  const scale = exponent - decimals.length
  return scale >= 0
    ? { numerator: unscaled * tenTo(scale), denominator: 1n }
    : { numerator: unscaled, denominator: tenTo(-scale) }
}

function tenTo(exponent: number): bigint {
  return BigInt(`1${'0'.repeat(exponent)}`)
}

function ceilOf(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator
  return numerator > 0n && quotient * denominator !== numerator ? quotient + 1n : quotient
}
