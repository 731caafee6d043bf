/** Parses values of options; on an error gives one line that commander prints after the option's name. */
import { InvalidArgumentError } from 'commander'
import type { DurationMs, Mib, Priority } from '../../protocol/units.ts'
import {
  formatDuration,
  DURATION_FORMAT,
  parseDuration,
  parseRange,
  parseSizeMib,
  RANGE_FORMAT,
  rangeCount,
  rangeValues,
} from '../../simulator/document/quantity.ts'
import { parseVram, VRAM_FORMAT } from '../../clients/typescript/vram-size.ts'
import { MAX_VRAM_MIB } from '../../protocol/limits.ts'

export const MAX_SEED = 4_294_967_295
/** Maximum values of one range. */
const MAX_RANGE_VALUES = 10_000
const MIN_TASK_ID = 1_000
/** The kernel reserves the two highest. */
const MAX_TASK_ID = 4_294_967_293
/** Limit of the controller for one GPU. */

export function whole(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It must be an integer from ${min} to ${max}.`)
  }
}

/** The id of a node on the wire. */
export function nodeUuid(text: string): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)) return text
  throw new InvalidArgumentError('It must be a lowercase UUID, as printed by the server at startup.')
}

/** A NODE_NAME that is also part of an identity at the broker. */
export function nodeName(text: string): string {
  if (/^[A-Za-z0-9][\w.-]{0,99}$/.test(text)) return text
  throw new InvalidArgumentError(
    'It must begin with a letter or digit and contain only letters, digits, . _ and -.',
  )
}

/**
 * Parses the name of a folder. An empty name would mean the current folder: `--data-dir "$DATA"` with an
 * empty variable.
 */
export function folder(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('It must not be empty.')
  return text
}

/** Parses a number above `min`, up to and including `max`. */
export function decimal(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{0,15}\.?\d{1,15}$/.test(text) ? Number(text) : NaN
    if (value > min && value <= max) return value
    throw new InvalidArgumentError(`It must be a number greater than ${min} and at most ${max}.`)
  }
}

export function time(text: string): DurationMs {
  const ms = parseDuration(text)
  if (ms === null) throw new InvalidArgumentError(`It must be ${DURATION_FORMAT}.`)
  return ms
}

/** A timer of Node counts milliseconds in 31 bits; 24 days are within them. */
const MAX_TIMEOUT_MS = 24 * 86_400_000

/** The value of --timeout. */
export const timeout = (text: string): DurationMs => timeWithin(1, MAX_TIMEOUT_MS)(text)

/** Parses a time between two bounds, both included. */
export function timeWithin(minMs: DurationMs, maxMs: DurationMs): (text: string) => DurationMs {
  return (text) => {
    const ms = time(text)
    if (ms >= minMs && ms <= maxMs) return ms
    throw new InvalidArgumentError(
      `It must be between ${formatDuration(minMs)} and ${formatDuration(maxMs)}.`,
    )
  }
}

/** Like timeWithin; a number alone is in the given unit, as in earlier versions. */
export function timeIn(unit: 's' | 'ms', minMs: DurationMs, maxMs: DurationMs): (text: string) => DurationMs {
  const within = timeWithin(minMs, maxMs)
  return (text) => within(/^\d{1,15}$/.test(text) ? `${text}${unit}` : text)
}

/** `P0` (highest) to `P4`; the number alone is accepted too. */
export function priority(text: string): Priority {
  if (/^P?[0-4]$/.test(text)) return Number(text.replace('P', '')) as Priority
  throw new InvalidArgumentError('It must be P0 (highest), P1, P2, P3 or P4.')
}

/** VRAM of each GPU, with its unit. */
export function vram(text: string): Mib {
  const value = parseVram(text)
  if (value !== null && value >= 1 && value <= MAX_VRAM_MIB) return value
  throw new InvalidArgumentError(`It must be ${VRAM_FORMAT}, from 1Mi to ${MAX_VRAM_MIB / 1024 / 1024}Ti.`)
}

/** MiB, or a size with a unit (`40960`, `40Gi`). */
export function mib(min: number, max: number): (text: string) => Mib {
  return (text) => {
    const value = parseSizeMib(text) ?? (/^\d{1,15}$/.test(text) ? Number(text) : NaN)
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(
      `It must be a number of MiB, or a size in Mi or Gi, from ${min} to ${max} MiB.`,
    )
  }
}

/**
 * Parses `1..20`, `0..200:20`, a number, or several of them: `0,50,100..200:20`. Returns each number once, in
 * the given order.
 */
export function integers(min: number, max: number): (text: string) => readonly number[] {
  const part = integerRange(min, max)
  return (text) => {
    const values = new Set(text.split(',').flatMap((each) => part(each.trim())))
    if (values.size <= MAX_RANGE_VALUES) return [...values]
    throw new InvalidArgumentError(`It has ${values.size} values; the limit is ${MAX_RANGE_VALUES}.`)
  }
}

function integerRange(min: number, max: number): (text: string) => readonly number[] {
  const single = whole(min, max)
  return (text) => {
    if (/^\d+$/.test(text)) return [single(text)]
    const range = parseRange(text)
    if (range === null)
      throw new InvalidArgumentError(
        `It must be a number, ${RANGE_FORMAT}, or a comma-separated list of these.`,
      )
    if (range.from < min || range.to > max)
      throw new InvalidArgumentError(`It must be between ${min} and ${max}.`)
    if (rangeCount(range) > MAX_RANGE_VALUES)
      throw new InvalidArgumentError(`It has ${rangeCount(range)} values; the limit is ${MAX_RANGE_VALUES}.`)
    return rangeValues(range)
  }
}

/** User ids for tasks: `200000-201023`. The first thousand belong to the system. */
export function idRange(text: string): { readonly from: number; readonly to: number } {
  const [from = NaN, to = NaN] = (/^(\d{1,10})-(\d{1,10})$/.exec(text)?.slice(1) ?? []).map(Number)
  if (from >= MIN_TASK_ID && from <= to && to <= MAX_TASK_ID) return { from, to }
  throw new InvalidArgumentError(
    `It must be a range FROM-TO between ${MIN_TASK_ID} and ${MAX_TASK_ID}, for example 200000-201023.`,
  )
}

/** Parses `SEQ:HASH`, once or several times. */
export function notedLinks(
  text: string,
  before: readonly { readonly seq: number; readonly hash: string }[] = [],
): readonly { readonly seq: number; readonly hash: string }[] {
  const [, seq, hash] = /^([1-9]\d{0,14}):([0-9a-f]{64})$/.exec(text) ?? []
  if (seq === undefined || hash === undefined) {
    throw new InvalidArgumentError(
      'It must be an event number, a colon, and the hash of the event: 64 lowercase hexadecimal digits.',
    )
  }
  return [...before, { seq: Number(seq), hash }]
}
