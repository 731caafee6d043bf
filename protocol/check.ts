/**
 * Checks input against a schema of `fields.ts`. One pass checks every field, removes unknown fields and names
 * the field that is wrong. TypeBox's compiled check takes the same time for the first of the three alone.
 */
import type { TSchema } from 'typebox'
import {
  ABSOLUTE_PATH,
  GPU_UUID,
  IMAGE_DIGEST,
  IMAGE_REFERENCE,
  INDEX_IS_PLACE,
  NO_NUL,
  ONE_LINE,
  PORT_NAME,
  REQUEST_PATH,
  SHA_256,
} from './fields.ts'

/**
 * Returns null when the value matches the schema, and removes unknown fields from the value. Otherwise
 * returns the place and what belongs there: `.body.attempt: must be …`.
 */
export type Check = (value: unknown) => string | null

/** Names that reach an object's prototype: refused in every message, even as a field to ignore. */
export const PROTOTYPE_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/** The keywords of the schemas of `fields.ts`. */
export interface Keywords {
  readonly type: string | readonly [string, 'null']
  readonly const?: string | number
  readonly enum?: readonly (string | number | null)[]
  readonly minimum: number
  readonly maximum: number
  readonly minLength: number
  readonly maxLength: number
  readonly pattern: string
  readonly items: Keywords
  readonly minItems: number
  readonly maxItems: number
  readonly uniqueItems?: boolean
  readonly [INDEX_IS_PLACE]?: boolean
  readonly properties: Readonly<Record<string, Keywords>>
  readonly required?: readonly string[]
  readonly discriminator?: string
  readonly oneOf: readonly Keywords[]
}

const LONGEST_QUOTE = 40

export function checkOf(schema: TSchema): Check {
  return checkOfKeywords(schema as unknown as Keywords)
}

function checkOfKeywords(schema: Keywords): Check {
  return typeof schema.type === 'string'
    ? checkOfType(schema.type, schema)
    : checkOfNullable(checkOfType(schema.type[0], schema))
}

function checkOfType(type: string, schema: Keywords): Check {
  const choice = schema.const === undefined ? schema.enum : [schema.const]
  if (choice !== undefined) return checkOfChoice(choice.filter((value) => value !== null))
  switch (type) {
    case 'integer':
      return checkOfInteger(schema.minimum, schema.maximum)
    case 'string':
      return checkOfText(schema)
    case 'boolean':
      return (value) => (typeof value === 'boolean' ? null : mustBe('true or false', value))
    case 'array':
      return checkOfList(schema)
    case 'object':
      return schema.discriminator === undefined
        ? checkOfRecord(schema)
        : checkOfTagged(schema.discriminator, schema.oneOf)
  }
  throw new Error(`schema of the unknown type '${type}'`)
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

const KINDS = [
  ONE_LINE,
  NO_NUL,
  IMAGE_DIGEST,
  IMAGE_REFERENCE,
  PORT_NAME,
  SHA_256,
  ABSOLUTE_PATH,
  GPU_UUID,
  REQUEST_PATH,
]

function checkOfText({ minLength, maxLength, pattern }: Keywords): Check {
  const characters = KINDS.find((each) => each.pattern === pattern)
  if (characters === undefined) throw new Error(`schema of a text with the unknown pattern '${pattern}'`)
  const { refused, description } = characters
  const expected = `a text of ${minLength} to ${maxLength} characters, ${description}`
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

function checkOfList({ items, minItems, maxItems, ...rules }: Keywords): Check {
  const check = checkOfKeywords(items)
  const mustDiffer = rules.uniqueItems === true
  const isIndexed = rules[INDEX_IS_PLACE] === true
  return (value) => {
    if (!Array.isArray(value) || value.length < minItems || value.length > maxItems) {
      return mustBe(`a list of ${minItems} to ${maxItems} items`, value)
    }
    for (let place = 0; place < value.length; place++) {
      const fault = check(value[place])
      if (fault !== null) return `[${place}]${fault}`
      if (isIndexed && (value[place] as { index: number }).index !== place)
        return `[${place}].index: must be ${place}, its place in the list`
    }
    return mustDiffer && value.length > 1 && new Set(value).size < value.length
      ? ': must not hold the same number twice'
      : null
  }
}

function checkOfRecord({ properties, required = [] }: Keywords): Check {
  const names = Object.keys(properties)
  const isRequired = new Set(required)
  const optional = names.filter((name) => !isRequired.has(name))
  const checks = Object.entries(properties).map(([name, field]) =>
    isRequired.has(name) ? checkOfKeywords(field) : checkOfOptional(checkOfKeywords(field)),
  )
  const known = new Set(names)
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

function checkOfOptional(check: Check): Check {
  return (value) => (value === undefined ? null : check(value))
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

function checkOfTagged(tag: string, variants: readonly Keywords[]): Check {
  const checks = new Map(
    variants.map((variant) => [variant.properties[tag]?.const as string, checkOfKeywords(variant)]),
  )
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
