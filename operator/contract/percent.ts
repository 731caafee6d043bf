/** Percentages of VRAM overcommit, from every place where the operator stack has one: 0 to 1000. */
import type { Percent } from '../../protocol/units.ts'
import { faulty, type Parsed, quoted, valid } from './field-fault.ts'

export const MIN_PERCENT = 0
export const MAX_PERCENT = 1000

const EXPECTED = `must be a whole number from ${MIN_PERCENT} to ${MAX_PERCENT}`
/** Without signs, spaces and leading zeros: one way to write each number. For CEL as well. */
export const PERCENT_PATTERN = '^(?:0|[1-9][0-9]{0,2}|1000)$'
const WHOLE = new RegExp(PERCENT_PATTERN)

/** A label, a variable or a Helm value in a variable. */
export function percentOfText(path: string, text: string): Parsed<Percent> {
  if (!WHOLE.test(text)) return faulty(path, `${EXPECTED}, not ${quoted(text)}`)
  return valid(Number(text))
}

/** A field of an object. */
export function percentOfField(path: string, value: unknown): Parsed<Percent> {
  return typeof value === 'number' &&
    Number.isInteger(value) &&
    value >= MIN_PERCENT &&
    value <= MAX_PERCENT &&
    !Object.is(value, -0)
    ? valid(value)
    : faulty(path, `${EXPECTED}, not ${quoted(value)}`)
}
