/**
 * The rule language of the scenario schema. Rules are plain data with descriptions, so that the checker, the
 * documentation and the JSON Schema share one table. The type parameter is the type of a checked value:
 * integers, milliseconds, MiB, keys as in the file.
 */
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'

export type Rule<T = unknown> = RuleData & Yields<T>

/** For the type checker only; never set. */
interface Yields<T> {
  readonly yields?: () => T
}

export type ValueOf<R> = R extends Yields<infer T> ? T : never

export type RuleData = ScalarData | ComposedData

export type ScalarData =
  | { readonly kind: 'integer'; readonly min: number; readonly max: number }
  /** `above` instead of `min` leaves the bound itself out. */
  | { readonly kind: 'number'; readonly min?: number; readonly above?: number; readonly max: number }
  /** `what` describes the pattern. */
  | { readonly kind: 'text'; readonly maxLength: number; readonly pattern?: RegExp; readonly what?: string }
  /** `meanings`: what each of them says, where the name alone does not. */
  | {
      readonly kind: 'choice'
      readonly choices: readonly (string | number)[]
      readonly meanings?: Readonly<Record<string, string>>
    }
  | { readonly kind: 'boolean' }
  /** Milliseconds out of `10m`; with `bareMs` also a whole number of ms, as in a trace. */
  | {
      readonly kind: 'duration'
      readonly min: DurationMs
      readonly max: DurationMs
      readonly bareMs: boolean
    }
  /** MiB: a whole number, or text with Mi or Gi. */
  | { readonly kind: 'size'; readonly min: Mib; readonly max: Mib }
  | { readonly kind: 'instant' }

export type ComposedData =
  /** Whole numbers: a list of them, or `A..B:STEP`. */
  | { readonly kind: 'integers'; readonly min: number; readonly max: number; readonly maxCount: number }
  /** Any JSON value. */
  | { readonly kind: 'json' }
  | { readonly kind: 'nullable'; readonly rule: Rule }
  | { readonly kind: 'list'; readonly item: Rule; readonly minItems: number; readonly maxItems: number }
  | { readonly kind: 'pair'; readonly first: Rule; readonly second: Rule }
  /** A map whose keys people choose. */
  | {
      readonly kind: 'dictionary'
      readonly key: RegExp
      readonly keyWhat: string
      readonly value: Rule
      readonly minKeys: number
      readonly maxKeys: number
    }
  | RecordData
  /** A record whose shape is told by which of these keys it has. */
  | { readonly kind: 'by_key'; readonly records: Readonly<Record<string, Rule>> }
  /** A record whose shape is told by the value of `key`. */
  | { readonly kind: 'by_value'; readonly key: string; readonly records: Readonly<Record<string, Rule>> }
  /** One rule for a number, text, boolean or null, another for a list or map. */
  | { readonly kind: 'scalar_or'; readonly scalar: Rule; readonly collection: Rule }

export interface RecordData {
  readonly kind: 'record'
  readonly fields: Fields
  /** Other common names of the field; used only for "did you mean". */
  readonly otherNames: Readonly<Record<string, string>>
  /** Checks rules across fields. Runs when every field is valid. */
  readonly check: RecordCheck<never> | null
}

export type Fields = Readonly<Record<string, Field>>

export interface Field<T = unknown> {
  readonly rule: Rule<T>
  readonly presence: 'required' | 'optional'
  /** Default of an optional field; undefined: absent from the checked value. */
  readonly fallback: T | undefined
  /** Description for the documentation. */
  readonly doc: string
  /** For a field that is absent from the checked value: the effective default, as written in a file. */
  readonly elsewhere?: unknown
}

/** @param refuse reports a problem at one of the record's fields, or at the record itself (null). */
export type RecordCheck<T> = (value: T, refuse: (field: string | null, detail: string) => void) => void

type RecordOf<F extends Fields> = { readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never }

// ── scalars ──────────────────────────────────────────────────────────────────

export const integer = (min: number, max: number): Rule<number> => ({ kind: 'integer', min, max })
export const numberFrom = (min: number, max: number): Rule<number> => ({ kind: 'number', min, max })
export const numberAbove = (above: number, max: number): Rule<number> => ({ kind: 'number', above, max })
export const text = (maxLength: number): Rule<string> => ({ kind: 'text', maxLength })
export const textLike = (pattern: RegExp, what: string, maxLength: number): Rule<string> => ({
  kind: 'text',
  pattern,
  what,
  maxLength,
})
export const boolean: Rule<boolean> = { kind: 'boolean' }
export const instant: Rule<Instant> = { kind: 'instant' }
export const json: Rule<unknown> = { kind: 'json' }
export const size = (min: Mib, max: Mib): Rule<Mib> => ({ kind: 'size', min, max })
export const duration = (min: DurationMs, max: DurationMs): Rule<DurationMs> => ({
  kind: 'duration',
  min,
  max,
  bareMs: false,
})
export const durationOrMs = (min: DurationMs, max: DurationMs): Rule<DurationMs> => ({
  kind: 'duration',
  min,
  max,
  bareMs: true,
})
export const integers = (min: number, max: number, maxCount: number): Rule<readonly number[]> => ({
  kind: 'integers',
  min,
  max,
  maxCount,
})

export function choice<const T extends string | number>(...choices: readonly T[]): Rule<T> {
  return { kind: 'choice', choices }
}

/** One of these names, each with its meaning. */
export function choiceOf<const T extends string>(meanings: Readonly<Record<T, string>>): Rule<T> {
  return { kind: 'choice', choices: Object.keys(meanings), meanings }
}

// ── composed ─────────────────────────────────────────────────────────────────

export const nullable = <T>(rule: Rule<T>): Rule<T | null> => ({ kind: 'nullable', rule })
export const pair = <A, B>(first: Rule<A>, second: Rule<B>): Rule<readonly [A, B]> => ({
  kind: 'pair',
  first,
  second,
})

export function list<T>(item: Rule<T>, minItems: number, maxItems: number): Rule<readonly T[]> {
  return { kind: 'list', item, minItems, maxItems }
}

export function dictionary<T>(
  key: RegExp,
  keyWhat: string,
  value: Rule<T>,
  minKeys: number,
  maxKeys: number,
): Rule<Readonly<Record<string, T>>> {
  return { kind: 'dictionary', key, keyWhat, value, minKeys, maxKeys }
}

export function record<F extends Fields>(
  fields: F,
  options: {
    readonly otherNames?: Readonly<Record<string, string>>
    readonly check?: RecordCheck<RecordOf<F>>
  } = {},
): Rule<RecordOf<F>> {
  return { kind: 'record', fields, otherNames: options.otherNames ?? {}, check: options.check ?? null }
}

export function byKey<R extends Readonly<Record<string, Rule>>>(
  records: R,
): Rule<{ [K in keyof R]: ValueOf<R[K]> }[keyof R]> {
  return { kind: 'by_key', records }
}

export function byValue<R extends Readonly<Record<string, Rule>>>(
  key: string,
  records: R,
): Rule<{ [K in keyof R]: ValueOf<R[K]> }[keyof R]> {
  return { kind: 'by_value', key, records }
}

export function scalarOr<A, B>(scalar: Rule<A>, collection: Rule<B>): Rule<A | B> {
  return { kind: 'scalar_or', scalar, collection }
}

// ── fields ───────────────────────────────────────────────────────────────────

export function required<T>(rule: Rule<T>, doc: string): Field<T> {
  return { rule, presence: 'required', fallback: undefined, doc }
}

/** Returns an optional field with a default. */
export function optional<T, D extends T>(rule: Rule<T>, fallback: D, doc: string): Field<T> {
  return { rule, presence: 'optional', fallback, doc }
}

/**
 * Returns an optional field without a default. @param elsewhere the effective default, for the documentation
 */
export function optionalAbsent<T>(rule: Rule<T>, doc: string, elsewhere?: unknown): Field<T | undefined> {
  return { rule, presence: 'optional', fallback: undefined, doc, elsewhere }
}
