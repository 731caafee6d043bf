/** Values of options: text to number or list, or one clear line that commander puts behind the option's name. */
import { InvalidArgumentError } from 'commander'
import type { DurationMs, Mib } from '../protocol/units.ts'
import {
  DURATION_FORMAT,
  parseDuration,
  parseRange,
  parseSizeMib,
  RANGE_FORMAT,
  rangeCount,
  rangeValues,
} from '../simulator/scenario/quantity.ts'

export const MAX_SEED = 4_294_967_295
/** Values of one range. */
const MAX_RANGE_VALUES = 10_000

export function whole(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN
    if (value >= least && value <= most) return value
    throw new InvalidArgumentError(`It must be an integer from ${least} to ${most}.`)
  }
}

/** Above `least`, up to and including `most`. */
export function decimal(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{0,15}\.?\d{1,15}$/.test(text) ? Number(text) : NaN
    if (value > least && value <= most) return value
    throw new InvalidArgumentError(`It must be a number above ${least} and at most ${most}.`)
  }
}

export function time(text: string): DurationMs {
  const ms = parseDuration(text)
  if (ms === null) throw new InvalidArgumentError(`It must be ${DURATION_FORMAT}.`)
  return ms
}

/** MiB, or a size with a unit (`40960`, `40Gi`). */
export function mib(least: number, most: number): (text: string) => Mib {
  return (text) => {
    const value = parseSizeMib(text) ?? (/^\d{1,15}$/.test(text) ? Number(text) : NaN)
    if (value >= least && value <= most) return value
    throw new InvalidArgumentError(`It must be MiB, or a size with Mi or Gi, from ${least} to ${most} MiB.`)
  }
}

/** `1..20`, `0..200:20`, or one number. */
export function integerRange(least: number, most: number): (text: string) => readonly number[] {
  const single = whole(least, most)
  return (text) => {
    if (/^\d+$/.test(text)) return [single(text)]
    const range = parseRange(text)
    if (range === null) throw new InvalidArgumentError(`It must be a number or ${RANGE_FORMAT}.`)
    if (range.from < least || range.to > most) throw new InvalidArgumentError(`It must lie between ${least} and ${most}.`)
    if (rangeCount(range) > MAX_RANGE_VALUES)
      throw new InvalidArgumentError(`It has ${rangeCount(range)} values; allowed are ${MAX_RANGE_VALUES}.`)
    return rangeValues(range)
  }
}
