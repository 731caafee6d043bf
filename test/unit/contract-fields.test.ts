import { Type, type TSchema } from 'typebox'
import { describe, expect, it } from 'vitest'
import {
  flag,
  integer,
  ONE_LINE,
  oneOf,
  optional,
  orNull,
  record,
  required,
  text,
  unsafe,
} from '../../protocol/fields.ts'

/** Everything in it, with the marks that JSON does not show. */
function whole(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return schema
  const names = Object.getOwnPropertyNames(schema)
  return Object.fromEntries(
    names.map((name) => [name, whole((schema as Readonly<Record<string, unknown>>)[name])]),
  )
}

const NAME = { minLength: 1, maxLength: 9, pattern: ONE_LINE.pattern, description: 'A name' }

const PAIRS: Readonly<Record<string, readonly [ours: TSchema, theirs: TSchema]>> = {
  'a number': [integer(1, 5, 'A count'), Type.Integer({ minimum: 1, maximum: 5, description: 'A count' })],
  'a text': [text(1, 9, 'A name'), Type.String(NAME)],
  'a flag': [flag(), Type.Boolean()],
  'an optional flag of another type': [
    optional(unsafe<string>(flag())),
    Type.Optional(Type.Unsafe<string>(Type.Boolean())),
  ],
  'a choice or null': [
    orNull(oneOf(['a', 'b'])),
    Type.Unsafe({ type: ['string', 'null'], enum: ['a', 'b', null] }),
  ],
  'a record': [
    record({ n: integer(0, 1), of: optional(flag()) }, 'Both'),
    Type.Object(
      { n: Type.Integer({ minimum: 0, maximum: 1 }), of: Type.Optional(Type.Boolean()) },
      { description: 'Both' },
    ),
  ],
  'a record without required fields': [
    record({ of: optional(flag()) }),
    Type.Object({ of: Type.Optional(Type.Boolean()) }),
  ],
}

describe('the fields of the contract', () => {
  it.each(Object.entries(PAIRS))('%s is the schema that TypeBox makes', (_name, [ours, theirs]) => {
    expect(whole(ours)).toEqual(whole(theirs))
    expect(JSON.stringify(ours)).toBe(JSON.stringify(theirs))
  })

  it('are required where TypeBox requires them', () => {
    const { properties } = record({ n: integer(0, 1), of: optional(unsafe<string>(flag())) })
    const theirs = Type.Required(Type.Object(properties)).properties
    expect(whole(required(properties))).toEqual(whole(theirs))
  })
})
