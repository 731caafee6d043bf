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
import { ID_LIMIT } from '../limits.ts'

/** A whole number in a range, both ends included. */
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

/** One of a few words, or null. */
export function oneOfOrNull<const T extends readonly string[]>(
  values: T,
  description: string,
): TUnsafe<T[number] | null> {
  return Type.Unsafe({ type: ['string', 'null'], enum: [...values, null], description })
}

/** A number that is counted or measured and never negative; answers only. */
export function count(description?: string) {
  return Type.Integer(description === undefined ? { minimum: 0 } : { minimum: 0, description })
}

export const mib = (description: string) => Type.Integer({ minimum: 0, description: `${description}, MiB` })

/** An instant, RFC 3339 in UTC with milliseconds; answers only. */
export function instant(description: string) {
  return Type.String({ format: 'date-time', description })
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

/** An object or null. Not a union: serialisers are quick on this form. */
export function objectOrNull<P extends TProperties>(
  object: TObject<P>,
  description: string,
): TUnsafe<Static<TObject<P>> | null> {
  return Type.Unsafe({ ...object, type: ['object', 'null'], description })
}

/** An array that may be read-only, as the domain's are. */
export function list<T extends TSchema>(
  items: T,
  options: TSchemaOptions = {},
): TUnsafe<readonly Static<T>[]> {
  return Type.Unsafe({ type: 'array', items, ...options })
}

/** Points at a schema that the server knows by its `$id`, so that the document holds it once. */
export function refTo<T>(id: string): TUnsafe<T> {
  return Type.Unsafe({ $ref: `${id}#` })
}

/** A page: `next_cursor` is what to send as `cursor` for the next one, null on the last. */
export function page<T extends TSchema>(items: T) {
  return Type.Object({
    items: list(items),
    next_cursor: textOrNull('Send it as cursor for the next page; null on the last'),
    total: countOrNull('How many match; null when that is not counted'),
  })
}

/** An object that may hold only the fields named. */
export function closed<P extends TProperties>(properties: P, options: TSchemaOptions = {}) {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

/** A path parameter: any text that could be an id. */
export function pathId(description: string) {
  return Type.String({ maxLength: ID_LIMIT, description })
}
