/**
 * Parses values of foreign files: numbers, times, and the many words for "no value". Every function is pure;
 * null means invalid.
 */
import type { DurationMs, Instant } from '../../../protocol/units.ts'

/** Words for "no value" of pandas, SQL, Slurm, nvidia-smi and Java, in lower case. */
const NOTHING: ReadonlySet<string> = new Set([
  '',
  '-',
  'none',
  'null',
  'nil',
  'nan',
  'nat',
  'na',
  'n/a',
  '[n/a]',
  '[not supported]',
  'unknown',
  'undefined',
  '\\n',
])

export function isNothing(text: string): boolean {
  return text.length <= 15 && NOTHING.has(text.toLowerCase())
}

const NUMBER = /^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$/

/** A finite number in plain decimal or scientific notation. */
export function numberOf(text: string): number | null {
  const number = NUMBER.test(text) ? Number(text) : NaN
  return number > -Infinity && number < Infinity ? number : null
}

/** 3,000 years: seconds up to this are exact in ms. */
const MAX_SECONDS = 100_000_000_000

/** @param perSecond units per second */
export function unitsToMs(value: number, perSecond: number): DurationMs | null {
  const seconds = value / perSecond
  return seconds >= -MAX_SECONDS && seconds <= MAX_SECONDS ? Math.round(seconds * 1000) : null
}

const DATE_TIME = new RegExp(
  /^(\d{4})[-/](\d{1,2})[-/](\d{1,2})[T ](\d{1,2}):(\d{2}):(\d{2})(?:[.,](\d{1,9}))?/.source +
    /\s*(Z|UTC|[+-]\d{2}:?\d{2})?$/.source,
  'i',
)

/**
 * A date and time, with or without a zone. Without one it is read as UTC: differences within one file are
 * right, except over a change of daylight saving time.
 */
export function dateTimeOf(text: string): Instant | null {
  const match = DATE_TIME.exec(text)
  if (match === null) return null
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number)
  if (month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 60 || year < 1) return null
  const midnight = Date.UTC(year, month - 1, day)
  // Date.UTC converts 31 April to 1 May.
  if (Number(new Date(midnight).toISOString().slice(8, 10)) !== day) return null
  const ms = Math.trunc(Number(`0.${match[7] ?? '0'}`) * 1000)
  return midnight + ((hour * 60 + minute) * 60 + second) * 1000 + ms - zoneMs(match[8])
}

function zoneMs(zone: string | undefined): DurationMs {
  const parts = /^([+-])(\d{2}):?(\d{2})$/.exec(zone ?? '')
  if (parts === null) return 0
  return (parts[1] === '-' ? -1 : 1) * (Number(parts[2]) * 60 + Number(parts[3])) * 60_000
}
