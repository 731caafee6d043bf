/**
 * The tables of `schema.ts` as JSON Schema, for servers and clients in other languages. `CANNOT_SAY` lists
 * what the codec refuses and JSON Schema cannot express; otherwise the two agree
 * (test/unit/asyncapi.test.ts).
 */
import { MAX_MESSAGE_BYTES } from './schema.ts'
import { CHARACTERS, PROTOTYPE_NAMES } from './schema-check.ts'
import type { Characters, RecordShape, Shape, TaggedShape } from './schema-field.ts'

/** JSON Schema draft 7, which AsyncAPI 3 accepts. */
export type JsonSchema = { readonly [keyword: string]: unknown }

/**
 * Unknown fields are ignored, except names that reach an object's prototype. A document with these schemas
 * must include this one.
 */
export const FIELD_NAME = { name: 'field_name', schema: { not: { enum: [...PROTOTYPE_NAMES] } } } as const

export const CANNOT_SAY: readonly string[] = [
  `A message has at most ${MAX_MESSAGE_BYTES} bytes, and is JSON in UTF-8 without a byte order mark.`,
  'Lengths of texts count UTF-16 code units, while JSON Schema counts characters: a character outside ' +
    'the basic plane counts twice.',
  'A number with a range is never minus zero.',
]

export function jsonSchemaOf(shape: Shape): JsonSchema {
  switch (shape.kind) {
    case 'integer':
      return { type: 'integer', minimum: shape.min, maximum: shape.max }
    case 'text':
      return {
        type: 'string',
        minLength: shape.minLength,
        maxLength: shape.maxLength,
        pattern: patternOf(shape.characters),
      }
    case 'flag':
      return { type: 'boolean' }
    case 'one_of':
      return shape.values.length === 1 ? { const: shape.values[0] } : { enum: [...shape.values] }
    case 'list':
      return schemaOfList(shape)
    case 'or_null':
      return { oneOf: [{ type: 'null' }, jsonSchemaOf(shape.of)] }
    case 'optional':
      return jsonSchemaOf(shape.of)
    case 'record':
      return schemaOfRecord(shape)
    case 'tagged':
      return schemaOfTagged(shape)
  }
}

/** Returns one variant of a tagged shape; its tag has that single value. */
export function variantOf({ tag, variants }: TaggedShape, name: string): RecordShape {
  const variant = variants[name]
  if (variant === undefined) throw new Error(`no variant '${name}'`)
  return { kind: 'record', fields: { ...variant.fields, [tag]: { kind: 'one_of', values: [name] } } }
}

/**
 * Refuses half of a surrogate pair, which is not a character. Whole pairs match, because patterns are read
 * with the flag `u`.
 */
function patternOf(characters: Characters): string {
  return `^[^${CHARACTERS[characters].refused.source.slice(1, -1)}\\ud800-\\udfff]*$`
}

function schemaOfList({ of, minItems, maxItems, rule }: Extract<Shape, { kind: 'list' }>): JsonSchema {
  const items = { type: 'array', minItems, maxItems, items: jsonSchemaOf(of) }
  switch (rule) {
    case 'none':
      return items
    case 'no_duplicates':
      return { ...items, uniqueItems: true }
    case 'index_is_place': {
      const places = Array.from({ length: maxItems }, (_, index) => ({
        properties: { index: { const: index } },
      }))
      return { allOf: [items, { items: places }] }
    }
  }
}

function schemaOfRecord({ fields }: RecordShape): JsonSchema {
  const properties = Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [name, jsonSchemaOf(field)]),
  )
  return {
    type: 'object',
    required: Object.keys(fields).filter((name) => fields[name]?.kind !== 'optional'),
    properties,
    propertyNames: { $ref: `#/components/schemas/${FIELD_NAME.name}` },
  }
}

function schemaOfTagged(shape: TaggedShape): JsonSchema {
  return { oneOf: Object.keys(shape.variants).map((name) => schemaOfRecord(variantOf(shape, name))) }
}
