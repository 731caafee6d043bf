/**
 * Messages derived from the schemas of the protocol, and paths in them: new operations and fields are covered
 * without changes here.
 */
import fc from 'fast-check'
import { Type } from 'typebox'
import type { TSchema } from 'typebox'
import type { Keywords } from '../../protocol/check.ts'
import { BODIES, ENVELOPE } from '../../protocol/envelope.ts'
import type { Body, Envelope } from '../../protocol/envelope.ts'
import {
  ABSOLUTE_PATH,
  IMAGE_DIGEST,
  IMAGE_REFERENCE,
  INDEX_IS_PLACE,
  NO_NUL,
  PORT_NAME,
  REQUEST_PATH,
  SHA_256,
  withTag,
} from '../../protocol/fields.ts'
import { MAX_MESSAGE_BYTES } from '../../protocol/limits.ts'

/** Every operation of the protocol. */
export const OPERATIONS = Object.keys(BODIES)

/** JSON values that are invalid for most fields. */
export const ODD_VALUES: readonly unknown[] = [
  undefined,
  null,
  true,
  false,
  0,
  1,
  -1,
  0.5,
  1e99,
  2 ** 31,
  2 ** 53,
  '',
  'x',
  'start',
  'a\u0000b',
  'a\tb',
  '\udfff',
  'x'.repeat(600),
  [],
  [0],
  [1, 1],
  [null],
  {},
  { index: 0 },
]

/** Any message of that operation that is small enough to be sent. */
export function envelopeOf(op: string): fc.Arbitrary<Envelope> {
  const body = withTag<TSchema>(BODIES[op as Body['op']], 'op', op)
  const any = valueOf(keywordsOf(Type.Object({ ...ENVELOPE.properties, body }))) as fc.Arbitrary<Envelope>
  return any.filter((message) => Buffer.byteLength(JSON.stringify(message)) <= MAX_MESSAGE_BYTES)
}

function keywordsOf(schema: TSchema): Keywords {
  return schema as unknown as Keywords
}

function valueOf(schema: Keywords): fc.Arbitrary<unknown> {
  if (typeof schema.type !== 'string') return fc.option(valueOf({ ...schema, type: schema.type[0] }))
  const choice = schema.const === undefined ? schema.enum : [schema.const]
  if (choice !== undefined) return fc.constantFrom(...choice.filter((value) => value !== null))
  switch (schema.type) {
    case 'integer': {
      const least = Math.max(schema.minimum, -9)
      return fc.oneof(
        fc.integer({ min: least, max: Math.min(schema.maximum, least + 18) }),
        fc.constantFrom(schema.minimum, schema.maximum),
      )
    }
    case 'string':
      return textOf(schema)
    case 'boolean':
      return fc.boolean()
    case 'array':
      return listOf(schema)
    case 'object':
      return schema.discriminator === undefined ? recordOf(schema) : fc.oneof(...schema.oneOf.map(valueOf))
  }
  throw new Error(`schema of the unknown type '${schema.type}'`)
}

function recordOf({ properties, required = [] }: Keywords): fc.Arbitrary<unknown> {
  const fields = Object.entries(properties).map(([name, field]) => [name, valueOf(field)] as const)
  return fc.record(Object.fromEntries(fields), { requiredKeys: [...required] })
}

function textOf({ minLength, maxLength, pattern }: Keywords): fc.Arbitrary<string> {
  if (pattern === IMAGE_REFERENCE.pattern)
    return fc.constantFrom('a', 'host:5000/a/b-c:v1', `a@sha256:${'0'.repeat(64)}`, 'x'.repeat(maxLength))
  if (pattern === PORT_NAME.pattern) return fc.constantFrom('a', 'api-2', '0', 'x'.repeat(maxLength))
  if (pattern === IMAGE_DIGEST.pattern) return fc.constant(`sha256:${'0f'.repeat(32)}`)
  if (pattern === SHA_256.pattern) return fc.constantFrom('0'.repeat(64), '9af'.repeat(21) + 'e')
  if (pattern === ABSOLUTE_PATH.pattern)
    return fc.constantFrom('/', '/data/漢 "x"\n', `/${'x'.repeat(maxLength - 1)}`)
  if (pattern === REQUEST_PATH.pattern)
    return fc.constantFrom('/', '/sleep?level=1', `/${'x'.repeat(maxLength - 1)}`)
  const units = fc.constantFrom(
    'a',
    'Z',
    '7',
    '-',
    '"',
    '\\',
    '/',
    ' ',
    'ü',
    '漢',
    '\u2028',
    ...(pattern === NO_NUL.pattern ? ['\n', '\u001b'] : []),
  )
  const plain = fc.string({ unit: units, minLength, maxLength: Math.min(maxLength, 12) })
  return fc.oneof(plain, fc.constantFrom('🎈', 'x'.repeat(maxLength)))
}

function listOf({ items, minItems, maxItems, ...rules }: Keywords): fc.Arbitrary<unknown[]> {
  const range = { minLength: minItems, maxLength: Math.min(maxItems, 4) }
  if (rules.uniqueItems === true) return fc.uniqueArray(valueOf(items), range)
  const any = fc.array(valueOf(items), range)
  return rules[INDEX_IS_PLACE] === true
    ? any.map((all) => all.map((item, index) => ({ ...(item as object), index })))
    : any
}

/** Every path in a message, for example `body.tasks.0.attempt`. */
export function pathsOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => [
    name,
    ...pathsOf(inner).map((path) => `${name}.${path}`),
  ])
}

/** A copy with another value at the path; undefined removes the field. */
export function withValueAt(value: unknown, path: string, replacement: unknown): unknown {
  const [name, ...rest] = path.split('.') as [string, ...string[]]
  const copy = Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }
  const inner = (copy as Record<string, unknown>)[name]
  return Object.assign(copy, {
    [name]: rest.length === 0 ? replacement : withValueAt(inner, rest.join('.'), replacement),
  })
}
