/** Checks input against a table of fields. Checks are built once from the table and run for every message. */
import type { Characters, ListRule, RecordShape, Shape, TaggedShape } from './schema-field.ts'

/**
 * Returns null when the value matches the table, and removes unknown fields from the value. Otherwise returns
 * the place and what belongs there: `.body.attempt: must be …`.
 */
export type Check = (value: unknown) => string | null

/** Names that reach an object's prototype: refused in every message, even as a field to ignore. */
export const PROTOTYPE_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/**
 * Characters that a text must not hold: one class of characters each, from which a JSON Schema pattern is
 * generated too.
 */
export const CHARACTERS: Readonly<
  Record<Characters, { readonly refused: RegExp; readonly description: string }>
> = {
  one_line: { refused: /[\u0000-\u001f\u007f]/, description: 'without control characters' },
  no_nul: { refused: /[\u0000]/, description: 'without NUL' },
}

const LONGEST_QUOTE = 40

export function checkOf(shape: Shape): Check {
  switch (shape.kind) {
    case 'integer':
      return checkOfInteger(shape.min, shape.max)
    case 'text':
      return checkOfText(shape)
    case 'flag':
      return (value) => (typeof value === 'boolean' ? null : mustBe('true or false', value))
    case 'one_of':
      return checkOfChoice(shape.values)
    case 'list':
      return checkOfList(shape)
    case 'or_null':
      return checkOfNullable(checkOf(shape.of))
    case 'optional':
      return checkOfOptional(checkOf(shape.of))
    case 'record':
      return checkOfRecord(shape)
    case 'tagged':
      return checkOfTagged(shape)
  }
}

function checkOfInteger(min: number, max: number): Check {
  // Minus zero equals zero, but would not be encoded as it was received.
  return (value) =>
    Number.isSafeInteger(value) &&
    (value as number) >= min &&
    (value as number) <= max &&
    !Object.is(value, -0)
      ? null
      : mustBe(`a whole number from ${min} to ${max}`, value)
}

function checkOfText({ minLength, maxLength, characters }: Extract<Shape, { kind: 'text' }>): Check {
  const { refused, description: words } = CHARACTERS[characters]
  const expected = `a text of ${minLength} to ${maxLength} characters, ${words}`
  return (value) => {
    if (typeof value !== 'string' || value.length < minLength || value.length > maxLength)
      return mustBe(expected, value)
    return refused.test(value) || !value.isWellFormed() ? mustBe(expected, value) : null
  }
}

function checkOfChoice(values: readonly (string | number)[]): Check {
  const expected = values.map((value) => JSON.stringify(value)).join(', ')
  return (value) => (values.includes(value as string | number) ? null : mustBe(expected, value))
}

function checkOfNullable(check: Check): Check {
  return (value) => {
    if (value === null) return null
    const fault = check(value)
    return fault?.startsWith(': ') === true ? `${fault} (null is allowed)` : fault
  }
}

function checkOfOptional(check: Check): Check {
  return (value) => (value === undefined ? null : check(value))
}

function checkOfList({ of, minItems, maxItems, rule }: Extract<Shape, { kind: 'list' }>): Check {
  const check = checkOf(of)
  return (value) => {
    if (!Array.isArray(value) || value.length < minItems || value.length > maxItems) {
      return mustBe(`a list of ${minItems} to ${maxItems} items`, value)
    }
    for (let place = 0; place < value.length; place++) {
      const fault = check(value[place])
      if (fault !== null) return `[${place}]${fault}`
    }
    return faultByRule(value, rule)
  }
}

function faultByRule(items: readonly unknown[], rule: ListRule): string | null {
  switch (rule) {
    case 'none':
      return null
    case 'no_duplicates':
      return items.length < 2 || new Set(items).size === items.length
        ? null
        : ': must not hold the same number twice'
    case 'index_is_place': {
      const place = items.findIndex((item, index) => (item as { index: number }).index !== index)
      return place < 0 ? null : `[${place}].index: must be ${place}, its place in the list`
    }
  }
}

function checkOfRecord({ fields }: RecordShape): Check {
  const names = Object.keys(fields)
  const checks = Object.values(fields).map(checkOf)
  const known = new Set(names)
  const optional = names.filter((name) => fields[name]?.kind === 'optional')
  return (value) => {
    if (!isRecord(value)) return mustBe('an object', value)
    for (let i = 0; i < names.length; i++) {
      const name = names[i] as string
      const fault = (checks[i] as Check)(value[name])
      if (fault !== null) return `.${name}${fault}`
    }
    let there = names.length
    for (const name of optional) if (value[name] === undefined) there -= 1
    return dropUnknown(value, known, there)
  }
}

/**
 * Compares counts of own fields: when all known fields are present and the counts are equal, no field is
 * unknown.
 */
function dropUnknown(
  value: Record<string, unknown>,
  known: ReadonlySet<string>,
  there: number,
): string | null {
  const names = Object.keys(value)
  if (names.length === there) return null
  for (const name of names) {
    if (known.has(name)) continue
    if (PROTOTYPE_NAMES.has(name)) return `.${name}: is not allowed as a field name`
    delete value[name]
  }
  return null
}

function checkOfTagged({ tag, variants }: TaggedShape): Check {
  const checks = new Map(Object.entries(variants).map(([name, shape]) => [name, checkOf(shape)]))
  const expected = [...checks.keys()].join(', ')
  return (value) => {
    if (!isRecord(value)) return mustBe('an object', value)
    const name = value[tag]
    const check = typeof name === 'string' ? checks.get(name) : undefined
    return check === undefined ? `.${tag}${mustBe(`one of ${expected}`, name)}` : check(value)
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function mustBe(expected: string, value: unknown): string {
  return `: must be ${expected}, not ${quote(value)}`
}

/** Describes a value in a few characters: logs show only a glimpse of hostile input. */
function quote(value: unknown): string {
  if (value === undefined) return 'missing'
  if (Array.isArray(value)) return `a list of ${value.length} items`
  if (typeof value === 'object' && value !== null) return 'an object'
  const quoted = JSON.stringify(value)
  return quoted.length <= LONGEST_QUOTE ? quoted : `${quoted.slice(0, LONGEST_QUOTE)}…`
}
