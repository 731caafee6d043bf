/** Checks one value of a scenario against the rule of its field. Never clamps or guesses. */
import { describeRule } from './describe-rule.ts'
import { nearestName } from './nearest-name.ts'
import { parseDuration, parseInstant, parseSizeMib } from './quantity.ts'
import type { Rule, ScalarData } from './rule.ts'

export type Scalar = string | number | boolean | null
export type Checked =
  { readonly ok: true; readonly value: Scalar } | { readonly ok: false; readonly detail: string }

/** @param allowed the rule to name in the message, if it allows more than `rule` (null, for example) */
export function checkScalar(value: Scalar, rule: ScalarData, allowed: Rule = rule): Checked {
  const checked = read(value, rule)
  if (checked !== undefined) return { ok: true, value: checked }
  return {
    ok: false,
    detail: `must be ${describeRule(allowed)}; is ${shownScalar(value)}${hint(value, rule)}`,
  }
}

/** Returns the value in the unit of the code, or undefined if it is not allowed. */
function read(value: Scalar, rule: ScalarData): Scalar | undefined {
  switch (rule.kind) {
    case 'integer':
      return isWhole(value, rule.min, rule.max) ? value : undefined
    case 'number':
      return isNumber(value, rule) ? value : undefined
    case 'text':
      return isText(value, rule) ? value : undefined
    case 'choice':
      return (typeof value === 'string' || typeof value === 'number') && rule.choices.includes(value)
        ? value
        : undefined
    case 'boolean':
      return typeof value === 'boolean' ? value : undefined
    case 'duration':
      return readDuration(value, rule)
    case 'size':
      return within(typeof value === 'string' ? parseSizeMib(value) : value, rule.min, rule.max)
    case 'instant':
      return typeof value === 'string' ? (parseInstant(value) ?? undefined) : undefined
  }
}

function isWhole(value: Scalar, min: number, max: number): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max
}

function within(value: Scalar, min: number, max: number): number | undefined {
  return isWhole(value, min, max) ? value : undefined
}

function isNumber(
  value: Scalar,
  { min, above, max }: Extract<ScalarData, { kind: 'number' }>,
): value is number {
  return (
    typeof value === 'number' && value >= (min ?? -Infinity) && value > (above ?? -Infinity) && value <= max
  )
}

function isText(
  value: Scalar,
  { maxLength, pattern }: Extract<ScalarData, { kind: 'text' }>,
): value is string {
  return (
    typeof value === 'string' &&
    value.length > 0 &&
    value.length <= maxLength &&
    (pattern?.test(value) ?? true)
  )
}

function readDuration(
  value: Scalar,
  { min, max, bareMs }: Extract<ScalarData, { kind: 'duration' }>,
): number | undefined {
  if (typeof value === 'string') return within(parseDuration(value), min, max)
  return value === 0 || bareMs ? within(value, min, max) : undefined
}

function hint(value: Scalar, rule: ScalarData): string {
  if (rule.kind === 'duration' && typeof value === 'number') return ', without a unit'
  if (rule.kind === 'text' && value !== null && typeof value !== 'string')
    return ', not text: put it in quotes'
  if (rule.kind !== 'choice' || typeof value !== 'string') return ''
  const near = nearestName(value, rule.choices.map(String))
  return near === null ? '' : `; did you mean ${near}?`
}

const MAX_SHOWN_LENGTH = 60

/** Returns the value as JSON, shortened. */
export function shownScalar(value: Scalar): string {
  if (value === null) return 'empty'
  // .nan and .inf have no JSON representation.
  const text = typeof value === 'number' ? String(value) : JSON.stringify(value)
  return text.length <= MAX_SHOWN_LENGTH ? text : `${text.slice(0, MAX_SHOWN_LENGTH)}…`
}
