/**
 * Values of options: text to number or list, or one clear line that commander puts behind the option's name.
 */
import { InvalidArgumentError } from 'commander'
import type { DurationMs, Mib, Priority } from '../protocol/units.ts'
import {
  formatDuration,
  DURATION_FORMAT,
  parseDuration,
  parseRange,
  parseSizeMib,
  RANGE_FORMAT,
  rangeCount,
  rangeValues,
} from '../simulator/scenario/quantity.ts'
import { parseVram, VRAM_FORMAT } from './vram-size.ts'

export const MAX_SEED = 4_294_967_295
/** Values of one range. */
const MAX_RANGE_VALUES = 10_000
const MIN_TASK_ID = 1_000
/** The kernel keeps the two highest for itself. */
const MAX_TASK_ID = 4_294_967_293
/** What the controller takes for one GPU. */
const MAX_VRAM_MIB = 16_777_216

export function whole(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It must be an integer from ${min} to ${max}.`)
  }
}

/** As nodes are named on the wire. */
export function nodeUuid(text: string): string {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)) return text
  throw new InvalidArgumentError('It must be a UUID in lower case, as the server says it when it starts.')
}

/**
 * Of a folder. An empty one would be the one where the command was called: `--data-dir "$DATA"`, and nothing
 * in it.
 */
export function folder(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('It names no folder.')
  return text
}

/** Above `least`, up to and including `most`. */
export function decimal(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{0,15}\.?\d{1,15}$/.test(text) ? Number(text) : NaN
    if (value > min && value <= max) return value
    throw new InvalidArgumentError(`It must be a number above ${min} and at most ${max}.`)
  }
}

export function time(text: string): DurationMs {
  const ms = parseDuration(text)
  if (ms === null) throw new InvalidArgumentError(`It must be ${DURATION_FORMAT}.`)
  return ms
}

/** A time between two bounds, both included. */
export function timeWithin(minMs: DurationMs, maxMs: DurationMs): (text: string) => DurationMs {
  return (text) => {
    const ms = time(text)
    if (ms >= minMs && ms <= maxMs) return ms
    throw new InvalidArgumentError(`It must be from ${formatDuration(minMs)} to ${formatDuration(maxMs)}.`)
  }
}

/** `P0` (highest) to `P4`; the bare number will do. */
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
    throw new InvalidArgumentError(`It must be MiB, or a size with Mi or Gi, from ${min} to ${max} MiB.`)
  }
}

/**
 * `1..20`, `0..200:20`, a number, or several of them: `0,50,100..200:20`. Each number once, in the order in
 * which they are written.
 */
export function integers(min: number, max: number): (text: string) => readonly number[] {
  const part = integerRange(min, max)
  return (text) => {
    const values = new Set(text.split(',').flatMap((each) => part(each.trim())))
    if (values.size <= MAX_RANGE_VALUES) return [...values]
    throw new InvalidArgumentError(`It has ${values.size} values; allowed are ${MAX_RANGE_VALUES}.`)
  }
}

function integerRange(min: number, max: number): (text: string) => readonly number[] {
  const single = whole(min, max)
  return (text) => {
    if (/^\d+$/.test(text)) return [single(text)]
    const range = parseRange(text)
    if (range === null)
      throw new InvalidArgumentError(
        `It must be a number, ${RANGE_FORMAT}, or several of them with commas between.`,
      )
    if (range.from < min || range.to > max)
      throw new InvalidArgumentError(`It must lie between ${min} and ${max}.`)
    if (rangeCount(range) > MAX_RANGE_VALUES)
      throw new InvalidArgumentError(`It has ${rangeCount(range)} values; allowed are ${MAX_RANGE_VALUES}.`)
    return rangeValues(range)
  }
}

/** User ids for tasks: `200000-201023`. The first thousand belong to the system. */
export function idRange(text: string): { readonly from: number; readonly to: number } {
  const [from = NaN, to = NaN] = (/^(\d{1,10})-(\d{1,10})$/.exec(text)?.slice(1) ?? []).map(Number)
  if (from >= MIN_TASK_ID && from <= to && to <= MAX_TASK_ID) return { from, to }
  throw new InvalidArgumentError(
    `It must be two numbers with - between, from ${MIN_TASK_ID} to ${MAX_TASK_ID}, as 200000-201023.`,
  )
}

/** `SEQ:HASH`, once or several times. */
export function notedLinks(
  text: string,
  before: readonly { readonly seq: number; readonly hash: string }[] = [],
): readonly { readonly seq: number; readonly hash: string }[] {
  const [, seq, hash] = /^([1-9]\d{0,14}):([0-9a-f]{64})$/.exec(text) ?? []
  if (seq === undefined || hash === undefined) {
    throw new InvalidArgumentError(
      'It must be the number of an event, a colon, and its hash: 64 digits from 0 to f.',
    )
  }
  return [...before, { seq: Number(seq), hash }]
}
