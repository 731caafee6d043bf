/**
 * The definition of an environment variable, and readers of common values: `undefined` means out of range.
 */
import { isIP } from 'node:net'
import { MAX_HOST_MIB } from '../../protocol/limits.ts'
import type { Mib } from '../../protocol/units.ts'
import { parseSizeMib } from '../../simulator/document/quantity.ts'

export interface EnvironmentVariable<T> {
  readonly name: string
  /** The allowed values, in words that follow "must be". */
  readonly range: string
  /** The default as text; null: unset. */
  readonly byDefault: string | null
  readonly meaning: string
  /** Reads a non-empty value; returns `undefined` when out of range. */
  read(text: string): T | undefined
  /** Its value is never shown. */
  readonly isSecret?: true
}

export const WORD = /^[^\s\p{Cc}]{1,200}$/u
export const ONE_LINE = /^[^\p{Cc}]+$/u

/** A path of only spaces is a mistake, and would become a folder of that name. */
export function aPath(text: string): string | undefined {
  return text.includes('\0') || text.trim() === '' ? undefined : text
}

export function integerIn(text: string, min: number, max: number): number | undefined {
  const value = /^(?:0|[1-9]\d{0,8})$/.test(text) ? Number(text) : NaN
  return value >= min && value <= max ? value : undefined
}

/** Memory of a host: `64Gi`, `512Mi`, or MiB. */
export function sizeMib(text: string): Mib | undefined {
  const value = parseSizeMib(text) ?? integerIn(text, 0, MAX_HOST_MIB)
  return value !== undefined && value <= MAX_HOST_MIB ? value : undefined
}

/** At most two decimal places. */
export function decimalIn(text: string, min: number, max: number): number | undefined {
  const value = /^(?:0|[1-9]\d{0,8})(?:\.\d{1,2})?$/.test(text) ? Number(text) : NaN
  return value >= min && value <= max ? value : undefined
}

export function trueOrFalse(text: string): boolean | undefined {
  return text === 'true' ? true : text === 'false' ? false : undefined
}

/** `30100-30199`. */
export function portRange(text: string): { readonly from: number; readonly to: number } | undefined {
  const [first = '', last = ''] = /^(\d+)-(\d+)$/.exec(text)?.slice(1) ?? []
  const [from, to] = [first, last].map((port) => integerIn(port, 1024, 65_535))
  return from !== undefined && to !== undefined && from <= to ? { from, to } : undefined
}

/** One address, which clients can use. */
export function hostAddress(text: string): string | undefined {
  const isEverywhere = /^[0:.]*$/.test(text)
  return isIP(text) !== 0 && !isEverywhere && !text.includes('%') ? text : undefined
}
