/**
 * The vocabulary for tables of message fields. A table is data: `schema-check.ts` checks payloads against it,
 * and a JSON Schema document is generated from it. Every number has a range, and every text and list a
 * maximum length, because payloads are hostile input (docs/protocol.md).
 */

/** A type of the wire. Numbers are whole, ranges inclusive, lengths in UTF-16 code units. */
export type Shape =
  | { readonly kind: 'integer'; readonly min: number; readonly max: number }
  | {
      readonly kind: 'text'
      readonly minLength: number
      readonly maxLength: number
      readonly characters: Characters
    }
  | { readonly kind: 'flag' }
  | { readonly kind: 'one_of'; readonly values: readonly (string | number)[] }
  | {
      readonly kind: 'list'
      readonly of: Shape
      readonly minItems: number
      readonly maxItems: number
      readonly rule: ListRule
    }
  | { readonly kind: 'or_null'; readonly of: Shape }
  /** Only for fields of a record: the field may be missing. */
  | { readonly kind: 'optional'; readonly of: Shape }
  | RecordShape
  | TaggedShape

/** All of these fields; each is required unless it is optional. Others are dropped. */
export interface RecordShape {
  readonly kind: 'record'
  readonly fields: Readonly<Record<string, Shape>>
}

/** One of several records; the field `tag` selects which. */
export interface TaggedShape {
  readonly kind: 'tagged'
  readonly tag: string
  readonly variants: Readonly<Record<string, RecordShape>>
}

/**
 * `one_line`: no control characters. `no_nul`: valid as an argument of a process. Text is always well-formed
 * Unicode.
 */
export type Characters = 'one_line' | 'no_nul'

/**
 * `no_duplicates`: for numbers. `index_is_place`: the field `index` of the first item is 0, of the next 1,
 * and so on.
 */
export type ListRule = 'none' | 'no_duplicates' | 'index_is_place'

/** A shape that describes values of type T, so that the compiler checks every table against `messages.ts`. */
export type Field<T> = Shape & { readonly describes?: T }
export type RecordField<T> = RecordShape & { readonly describes?: T }
export type TaggedField<T> = TaggedShape & { readonly describes?: T }

export function integer(min: number, max: number): Field<number> {
  return { kind: 'integer', min, max }
}

export function text(
  minLength: number,
  maxLength: number,
  characters: Characters = 'one_line',
): Field<string> {
  return { kind: 'text', minLength, maxLength, characters }
}

export const flag: Field<boolean> = { kind: 'flag' }

export function oneOf<const V extends string | number>(...values: readonly V[]): Field<V> {
  return { kind: 'one_of', values }
}

/**
 * Lists all values of T. The compiler reports a value that was added to `messages.ts` and is missing here:
 * `every<Residency>()('none', 'resident', …)`.
 */
export function every<T extends string | number>() {
  return <const V extends readonly T[]>(...values: [T] extends [V[number]] ? V : never): Field<T> => ({
    kind: 'one_of',
    values,
  })
}

export function list<T>(
  of: Field<T>,
  minItems: number,
  maxItems: number,
  rule: ListRule = 'none',
): Field<readonly T[]> {
  return { kind: 'list', of, minItems, maxItems, rule }
}

export function orNull<T>(of: Field<T>): Field<T | null> {
  return { kind: 'or_null', of }
}

export function optional<T>(of: Field<T>): Field<T> {
  return { kind: 'optional', of }
}

export function record<T>(fields: { readonly [K in keyof T]-?: Field<T[K]> }): RecordField<T> {
  return { kind: 'record', fields: fields as Readonly<Record<string, Shape>> }
}

/** Each variant also has the tag among its fields. */
export function tagged<T, const G extends keyof T & string>(
  tag: G,
  variants: Variants<T, G>,
): TaggedField<T> {
  return { kind: 'tagged', tag, variants: variants as Readonly<Record<string, RecordShape>> }
}

/** For each value of the tag, the record of the member with that value. */
type Variants<T, G extends keyof T> = { readonly [K in T[G] & string]: RecordField<MemberWith<T, G, K>> }
type MemberWith<T, G extends keyof T, K> = T extends unknown ? (K extends T[G] ? T : never) : never
