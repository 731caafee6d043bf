/** The building blocks of request and response schemas. */
import {
  Type,
  type Static,
  type TObject,
  type TProperties,
  type TSchema,
  type TSchemaOptions,
  type TUnsafe,
} from 'typebox'
import { ID_LIMIT } from './limits.ts'

/** An integer in an inclusive range. */
export function integer(minimum: number, maximum: number, options: TSchemaOptions = {}) {
  return Type.Integer({ minimum, maximum, ...options })
}

export function integerOrNull(
  minimum: number,
  maximum: number,
  options: TSchemaOptions = {},
): TUnsafe<number | null> {
  return Type.Unsafe({ type: ['integer', 'null'], minimum, maximum, ...options })
}

/** One of a few values. */
export function oneOf<const T extends readonly (string | number)[]>(
  values: T,
  options: TSchemaOptions = {},
): TUnsafe<T[number]> {
  const type = typeof values[0] === 'number' ? 'integer' : 'string'
  return Type.Unsafe({ type, enum: [...values], ...options })
}

/** One of a few strings, or null. */
export function oneOfOrNull<const T extends readonly string[]>(
  values: T,
  description: string,
): TUnsafe<T[number] | null> {
  return Type.Unsafe({ type: ['string', 'null'], enum: [...values, null], description })
}

/** A non-negative integer; responses only. */
export function count(description?: string) {
  return Type.Integer(description === undefined ? { minimum: 0 } : { minimum: 0, description })
}

export const mib = (description: string) => Type.Integer({ minimum: 0, description: `${description}, MiB` })

/** An instant, RFC 3339 in UTC with milliseconds; responses only. */
export function instant(description: string) {
  return Type.String({ format: 'date-time', description })
}

/** A time in a query: RFC 3339 in UTC, an existing calendar day. */
export function moment(description: string) {
  return Type.String({
    format: 'date-time',
    pattern: '^\\d{4}-\\d{2}-\\d{2}T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,3})?Z$',
    description,
    'x-allowed': 'a time in UTC such as 2026-01-31T08:00:00Z',
  })
}

/** One or several of a few strings, separated by commas. */
export function wordsOf(words: readonly string[], maxLength: number, description: string) {
  const word = `(${words.join('|')})`
  const allowed = `one or more of ${words.join(', ')}`
  return Type.String({
    maxLength,
    pattern: `^${word}(,${word})*$`,
    description: `${description}: ${allowed}`,
    'x-allowed': allowed,
  })
}

/**
 * Key of schema rules that appear only in the OpenAPI document. Code enforces them with clearer messages
 * than a validator gives.
 */
export const DOCUMENT_ONLY = 'x-document-only'

/** Requires exactly one of these fields in an object. */
export function exactlyOneOf(...names: readonly string[]) {
  return { oneOf: names.map((name) => ({ required: [name] })) }
}

export function textOrNull(description: string): TUnsafe<string | null> {
  return Type.Unsafe({ type: ['string', 'null'], description })
}

export function instantOrNull(description: string): TUnsafe<string | null> {
  return Type.Unsafe({ type: ['string', 'null'], format: 'date-time', description })
}

export function countOrNull(description: string): TUnsafe<number | null> {
  return Type.Unsafe({ type: ['integer', 'null'], description })
}

export function numberOrNull(description: string): TUnsafe<number | null> {
  return Type.Unsafe({ type: ['number', 'null'], description })
}

/** An object or null. Not a union, because serialisers are faster on this form. */
export function objectOrNull<P extends TProperties>(
  object: TObject<P>,
  description: string,
): TUnsafe<Static<TObject<P>> | null> {
  return Type.Unsafe({ ...object, type: ['object', 'null'], description })
}

/** An array typed as read-only, as in the domain. */
export function list<T extends TSchema>(
  items: T,
  options: TSchemaOptions = {},
): TUnsafe<readonly Static<T>[]> {
  return Type.Unsafe({ type: 'array', items, ...options })
}

/** References a registered schema by its `$id`, so that the document defines it once. */
export function refTo<T>(id: string): TUnsafe<T> {
  return Type.Unsafe({ $ref: `${id}#` })
}

/** A page of items with a cursor for the next page. */
export function page<T extends TSchema>(items: T) {
  return Type.Object({
    items: list(items),
    next_cursor: textOrNull('Send it as `cursor` for the next page; null on the last page'),
    total: countOrNull('Number of matches; null: not counted'),
  })
}

/** An object without additional properties. */
export function closed<P extends TProperties>(properties: P, options: TSchemaOptions = {}) {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

/** A path parameter: any text that could be an id. */
export function pathId(description: string) {
  return Type.String({ maxLength: ID_LIMIT, description })
}
