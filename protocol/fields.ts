/**
 * The vocabulary of the contract's schemas, in TypeBox: kinds of fields with their ranges. Every number has a
 * range, and every text and list a maximum length, because messages are hostile input (docs/protocol.md).
 */
import type {
  Static,
  TBoolean,
  TInteger,
  TObject,
  TOptional,
  TProperties,
  TSchema,
  TSchemaOptions,
  TString,
  TUnsafe,
} from 'typebox'
import { MAX_COUNT } from './limits.ts'

/** The type of the values of a schema, read-only at every depth. */
export type Value<S extends TSchema> = ReadonlyDeep<Static<S>>
type ReadonlyDeep<T> = T extends object ? { readonly [K in keyof T]: ReadonlyDeep<T[K]> } : T

/** A record that is being made: its fields can be set. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** Characters that a text must not contain. Half of a surrogate pair is not a character. */
export interface Characters {
  readonly refused: RegExp
  readonly pattern: string
  readonly description: string
}

export const ONE_LINE: Characters = {
  refused: /[\u0000-\u001f\u007f]/,
  pattern: '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]*$',
  description: 'without control characters',
}

/** Valid as an argument of a process. */
export const NO_NUL: Characters = {
  refused: /[\u0000]/,
  pattern: '^[^\\u0000\\ud800-\\udfff]*$',
  description: 'without NUL',
}

/** Labels of a host name, a port; components of a path; a tag; a digest (grammar of the OCI distribution). */
const HOST = '[A-Za-z0-9]+(-+[A-Za-z0-9]+)*(\\.[A-Za-z0-9]+(-+[A-Za-z0-9]+)*)*(:[0-9]{1,5})?'
const COMPONENT = '[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*'
const ALGORITHM = '[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*'
const DIGEST = `${ALGORITHM}:[0-9a-f]{32,128}`
const TAG = '[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}'
const IMAGE_PATTERN = `^(${HOST}/)?${COMPONENT}(/${COMPONENT})*(:${TAG})?(@${DIGEST})?$`

/** Characters of a name in a path or a host name. */
export const PORT_NAME: Characters = {
  refused: /^-|[^a-z0-9-]/,
  pattern: '^[a-z0-9][a-z0-9-]*$',
  description: 'lowercase letters, digits and hyphens, such as api or metrics-2',
}

/** Characters of the path of an HTTP request, including its query. */
export const REQUEST_PATH: Characters = {
  refused: /^(?!\/)|[^\x21-\x7e]/,
  pattern: '^/[\\x21-\\x7e]*$',
  description: 'a path such as /sleep?level=1',
}

/** Characters of the name under which a server offers a data folder. */
export const MOUNT_NAME: Characters = {
  ...PORT_NAME,
  description: 'lowercase letters, digits and hyphens, such as datasets',
}

/** A reference to a container image: `[registry/]path[:tag][@digest]`. */
export const IMAGE_REFERENCE: Characters = {
  refused: new RegExp(`^(?!${IMAGE_PATTERN.slice(1)})`),
  pattern: IMAGE_PATTERN,
  description: 'a reference to an image such as registry.example/team/train:v2',
}

/** Under which a registry has an image; it names the same content everywhere. */
export const IMAGE_DIGEST: Characters = {
  refused: /^(?!sha256:[0-9a-f]{64}$)/,
  pattern: '^sha256:[0-9a-f]{64}$',
  description: 'sha256: and 64 hexadecimal digits',
}

/** SHA-256 of some bytes. */
export const SHA_256: Characters = {
  refused: /^(?![0-9a-f]{64}$)/,
  pattern: '^[0-9a-f]{64}$',
  description: 'a SHA-256 in hexadecimal digits',
}

/** Characters of the name that a driver gives a GPU. */
export const GPU_UUID: Characters = {
  refused: /^-|[^A-Za-z0-9-]/,
  pattern: '^[A-Za-z0-9][A-Za-z0-9-]*$',
  description: 'letters, digits and hyphens',
}

/** An absolute path of a host. */
export const ABSOLUTE_PATH: Characters = {
  refused: /^(?!\/)|\u0000/,
  pattern: '^/[^\\u0000\\ud800-\\udfff]*$',
  description: 'an absolute path such as /data/project',
}

/** A whole number in an inclusive range. */
export function integer(minimum: number, maximum: number, description?: string): TInteger {
  return withMark({ type: 'integer', minimum, maximum, ...described(description) }, '~kind', 'Integer')
}

export function count(description?: string): TInteger {
  return integer(0, MAX_COUNT, description)
}

/** A well-formed text on one line; `characters` allows others. Lengths in UTF-16 code units. */
export function text(
  minLength: number,
  maxLength: number,
  description?: string,
  { pattern } = ONE_LINE,
): TString {
  const schema = { type: 'string', minLength, maxLength, pattern, ...described(description) }
  return withMark(schema, '~kind', 'String')
}

export function flag(description?: string): TBoolean {
  return withMark({ type: 'boolean', ...described(description) }, '~kind', 'Boolean')
}

/** One of a few values. */
export function oneOf<const V extends readonly (string | number)[]>(
  values: V,
  description?: string,
): TUnsafe<V[number]> {
  const type = typeof values[0] === 'number' ? 'integer' : 'string'
  const choice = values.length === 1 ? { const: values[0] } : { enum: [...values] }
  return unsafe({ type, ...choice, ...described(description) })
}

export function list<T extends TSchema>(
  items: T,
  minItems: number,
  maxItems: number,
  description?: string,
): TUnsafe<readonly Static<T>[]> {
  return unsafe({ type: 'array', minItems, maxItems, items, ...described(description) })
}

/** The same list without equal items. For numbers. */
export function withoutDuplicates<T>(of: TUnsafe<T>): TUnsafe<T> {
  return unsafe({ ...of, uniqueItems: true })
}

/** The extension keyword of `indexed`. */
export const INDEX_IS_PLACE = 'x-index-is-place'

/** The same list of objects whose `index` is 0 in the first item, 1 in the next, and so on. */
export function indexed<T>(of: TUnsafe<T>, maxItems: number): TUnsafe<T> {
  const places = Array.from({ length: maxItems }, (_, index) => ({ properties: { index: { const: index } } }))
  return unsafe({ ...of, [INDEX_IS_PLACE]: true, allOf: [{ items: places }] })
}

/** The same schema that also allows null. For scalars and lists. */
export function orNull<T extends TSchema>(of: T, description?: string): TUnsafe<Static<T> | null> {
  const {
    type,
    enum: values,
    ...rest
  } = of as unknown as { readonly type: string; readonly enum?: unknown[] }
  const choice = values === undefined ? {} : { enum: [...values, null] }
  return unsafe({ type: [type, 'null'], ...choice, ...rest, ...described(description) })
}

export function withDefault<T>(of: TUnsafe<T>, value: T): TUnsafe<T> {
  return unsafe({ ...of, default: value })
}

/** The same schema; a refusal says in these words what is allowed, where a pattern says it badly. */
export function inWords<T>(of: TUnsafe<T>, allowed: string): TUnsafe<T> {
  return unsafe({ ...of, 'x-allowed': allowed })
}

export function record<P extends TProperties>(properties: P, description?: string): TObject<P> {
  const names = Object.keys(properties).filter((name) => !('~optional' in (properties[name] as object)))
  const required = names.length === 0 ? {} : { required: names }
  const schema = { type: 'object', ...required, properties, ...described(description) }
  return withMark(schema, '~kind', 'Object')
}

export function optional<S extends TSchema>(of: S): TOptional<S> {
  return withMark(copyOf(of), '~optional', true)
}

/** The same fields, each of which a record must have. */
export function required<P extends TProperties>(fields: P): { readonly [K in keyof P]: RequiredField<P[K]> } {
  const entries = Object.entries(fields).map(([name, field]) => {
    const copy = copyOf(field)
    delete copy['~optional']
    return [name, copy] as const
  })
  return Object.fromEntries(entries) as { readonly [K in keyof P]: RequiredField<P[K]> }
}

type RequiredField<S extends TSchema> = S extends TOptional<infer Of extends TSchema> ? Of : S

/** One of several records, selected by the field `tag`, which each of them has. */
export function tagged<const V extends Readonly<Record<string, TSchema>>>(
  tag: string,
  variants: V,
): TUnsafe<Static<V[keyof V]>> {
  const oneOf = Object.entries(variants).map(([value, variant]) => withTag(variant, tag, value))
  return unsafe({ type: 'object', discriminator: tag, oneOf })
}

/** The same record whose field `tag` has only this value. */
export function withTag<S extends TSchema>(of: S, tag: string, value: string): S {
  const { properties } = of as unknown as { readonly properties: Readonly<Record<string, TSchema>> }
  return { ...of, properties: { ...properties, [tag]: oneOf([value]) } }
}

/** Its type is what the caller says. */
export function unsafe<T>(schema: object): TUnsafe<T> {
  return withMark(copyOf(schema), '~unsafe', null)
}

/**
 * TypeBox marks its schemas with properties that JSON does not show. The builders of this file set the same
 * marks without TypeBox, which consists of 370 files: every start of the command line would load them.
 */
function withMark<S>(schema: object, name: '~kind' | '~optional' | '~unsafe', value: unknown): S {
  return Object.defineProperty(schema, name, { value, configurable: true, writable: true }) as S
}

/** With its marks. */
function copyOf(schema: object): { '~optional'?: true } {
  return Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema))
}

function described(description: string | undefined): TSchemaOptions {
  return description === undefined ? {} : { description }
}
