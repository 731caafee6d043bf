/** The fields of the configuration as the interface describes them (/openapi.json): nothing of them is retyped here. Pure. */
import type { ConfigBody } from '../../../controller/api/schema/config.ts'

export type FieldName = Exclude<keyof ConfigBody, 'source' | 'revision'>
export type FieldValue = number | string | null

export interface FieldInfo {
  readonly name: FieldName
  readonly meaning: string
  readonly byDefault: FieldValue
  readonly isNullable: boolean
  /** Null: a whole number between min and max. */
  readonly choices: readonly string[] | null
  readonly min: number
  readonly max: number
}

interface FieldSchema {
  readonly type?: string | readonly string[]
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly description?: string
  readonly default?: FieldValue
}

export interface OpenApi {
  readonly components: { readonly schemas: Readonly<Record<string, { readonly properties?: Readonly<Record<string, FieldSchema>> }>> }
}

const NO_FIELDS: readonly string[] = ['source', 'revision']

export function fieldsOf({ components }: OpenApi): readonly FieldInfo[] {
  const properties = components.schemas['Config']?.properties ?? {}
  return Object.entries(properties)
    .filter(([name]) => !NO_FIELDS.includes(name))
    .map(([name, schema]) => ({
      name: name as FieldName,
      meaning: schema.description ?? '',
      byDefault: schema.default ?? null,
      isNullable: [schema.type ?? []].flat().includes('null'),
      choices: schema.enum ?? null,
      min: schema.minimum ?? 0,
      max: schema.maximum ?? Number.MAX_SAFE_INTEGER,
    }))
}

export function rangeOf({ choices, min, max, isNullable }: FieldInfo): string {
  return choices === null
    ? `a whole number from ${min} to ${max}${isNullable ? ', or empty for none' : ''}`
    : `one of ${choices.join(', ')}`
}

export type Read = { readonly ok: true; readonly value: FieldValue } | { readonly ok: false; readonly why: string }

/** What somebody typed; refused rather than bent into a number. */
export function readField(field: FieldInfo, text: string): Read {
  const refused: Read = { ok: false, why: `It must be ${rangeOf(field)}.` }
  if (field.choices !== null) return field.choices.includes(text) ? { ok: true, value: text } : refused
  const trimmed = text.trim()
  if (trimmed === '') return field.isNullable ? { ok: true, value: null } : refused
  if (!/^-?\d{1,15}$/.test(trimmed)) return refused
  const value = Number(trimmed)
  return value >= field.min && value <= field.max ? { ok: true, value } : refused
}

export function textOf(value: FieldValue | undefined): string {
  return value === null || value === undefined ? '' : String(value)
}

export function shown(value: FieldValue | undefined): string {
  return value === null ? 'none' : textOf(value)
}

export interface Difference {
  readonly name: FieldName
  readonly before: FieldValue
  readonly after: FieldValue
}

/** Fields that differ, in the order of the first. */
export function differences(before: object, after: object): readonly Difference[] {
  const was = before as Readonly<Record<string, FieldValue>>
  const is = after as Readonly<Record<string, FieldValue>>
  return Object.keys(was)
    .filter((name) => !NO_FIELDS.includes(name) && name in is && was[name] !== is[name])
    .map((name) => ({ name: name as FieldName, before: was[name] as FieldValue, after: is[name] as FieldValue }))
}

/** The change lowers what may be promised: it asks twice. */
export function isLowering(changes: readonly Difference[]): boolean {
  return changes.some(
    ({ name, before, after }) =>
      (name === 'default_vram_overcommit_percent' && Number(after) < Number(before)) ||
      (name === 'safety_reserve_mib' && Number(after) > Number(before)),
  )
}
