/**
 * Messages made from the tables of the protocol, and places in them: what a new operation or field says is
 * tried without a line here.
 */
import fc from 'fast-check'
import { variantOf } from '../../protocol/json-schema.ts'
import type { Envelope } from '../../protocol/messages.ts'
import { BODIES, ENVELOPE } from '../../protocol/schema.ts'
import type { Shape } from '../../protocol/schema-field.ts'

/** Every operation of the wire. */
export const OPERATIONS = Object.keys(BODIES.variants)

/** What JSON can say, and no field wants everywhere. */
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

/** Any message of that operation. */
export function envelopeOf(op: string): fc.Arbitrary<Envelope> {
  return valueOf({
    kind: 'record',
    fields: { ...ENVELOPE.fields, body: variantOf(BODIES, op) },
  }) as fc.Arbitrary<Envelope>
}

function valueOf(shape: Shape): fc.Arbitrary<unknown> {
  switch (shape.kind) {
    case 'integer':
      return fc.oneof(
        fc.integer({ min: Math.max(shape.min, -9), max: Math.min(shape.max, 9) }),
        fc.constantFrom(shape.min, shape.max),
      )
    case 'text':
      return textOf(shape)
    case 'flag':
      return fc.boolean()
    case 'one_of':
      return fc.constantFrom(...shape.values)
    case 'or_null':
      return fc.option(valueOf(shape.of))
    case 'optional':
      return valueOf(shape.of)
    case 'list':
      return listOf(shape)
    case 'record':
      return fc.record(
        Object.fromEntries(Object.entries(shape.fields).map(([name, field]) => [name, valueOf(field)])),
        {
          requiredKeys: Object.keys(shape.fields).filter((name) => shape.fields[name]?.kind !== 'optional'),
        },
      )
    case 'tagged':
      return fc.oneof(...Object.keys(shape.variants).map((name) => valueOf(variantOf(shape, name))))
  }
}

function textOf({
  minLength,
  maxLength,
  characters,
}: Extract<Shape, { kind: 'text' }>): fc.Arbitrary<string> {
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
    ...(characters === 'no_nul' ? ['\n', '\u001b'] : []),
  )
  const plain = fc.string({ unit: units, minLength, maxLength: Math.min(maxLength, 12) })
  return fc.oneof(plain, fc.constantFrom('🎈', 'x'.repeat(maxLength)))
}

function listOf({ of, minItems, maxItems, rule }: Extract<Shape, { kind: 'list' }>): fc.Arbitrary<unknown[]> {
  const range = { minLength: minItems, maxLength: Math.min(maxItems, 4) }
  if (rule === 'no_duplicates') return fc.uniqueArray(valueOf(of), range)
  const items = fc.array(valueOf(of), range)
  return rule === 'none'
    ? items
    : items.map((all) => all.map((item, index) => ({ ...(item as object), index })))
}

/** Every place in a message, as `body.tasks.0.attempt`. */
export function pathsOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => [
    name,
    ...pathsOf(inner).map((path) => `${name}.${path}`),
  ])
}

/** A copy in which the value at the path is another one; undefined takes a field away. */
export function withValueAt(value: unknown, path: string, replacement: unknown): unknown {
  const [name, ...rest] = path.split('.') as [string, ...string[]]
  const copy = Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }
  const inner = (copy as Record<string, unknown>)[name]
  return Object.assign(copy, {
    [name]: rest.length === 0 ? replacement : withValueAt(inner, rest.join('.'), replacement),
  })
}
