/**
 * The configuration fields as the API describes them (/openapi.json), so that ranges, defaults and meanings
 * are not duplicated here. Pure.
 */
import type { ConfigBody } from '../../controller/api/config/schema.ts'

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
  readonly components: {
    readonly schemas: Readonly<
      Record<string, { readonly properties?: Readonly<Record<string, FieldSchema>> }>
    >
  }
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

/** Display name; null: only the name in the API. */
export function titleOf(name: FieldName): string | null {
  return (TITLES as Readonly<Record<string, string>>)[name] ?? null
}

const TITLES: Readonly<Partial<Record<FieldName, string>>> = {
  default_vram_overcommit_percent: 'VRAM overcommit (%)',
  safety_reserve_mib: 'Safety reserve per GPU (MiB)',
  idle_swap_out_seconds: 'Idle time before swap-out (s)',
  max_residency_seconds: 'Maximum residency under contention (s)',
  swap_in_aging_seconds: 'Swap-in wait before P0 rank (s)',
  swap_in_probe_seconds: 'Swap-in probe interval (s)',
  eager_swap_in_seconds: 'Swapped-out time before eager swap-in (s)',
  reservation_after_seconds: 'Queue wait before GPU reservation (s)',
  queue_aging_seconds: 'Queue aging interval per priority class (s)',
  placement_strategy: 'Placement strategy',
  max_tasks_per_gpu: 'Maximum tasks per GPU',
  max_requeues: 'Default maximum of requeues after short attempts',
  heartbeat_seconds: 'Heartbeat interval of GPU servers (s)',
  run_lease_seconds: 'Run lease without controller contact (s)',
}

export type Read =
  { readonly ok: true; readonly value: FieldValue } | { readonly ok: false; readonly why: string }

/** Parses the entered text; invalid text is rejected rather than converted. */
export function readField(field: FieldInfo, text: string): Read {
  const refused: Read = { ok: false, why: `Enter ${rangeOf(field)}.` }
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

/** Fields that differ, in the order of `before`. */
export function differences(before: object, after: object): readonly Difference[] {
  const was = before as Readonly<Record<string, FieldValue>>
  const is = after as Readonly<Record<string, FieldValue>>
  return Object.keys(was)
    .filter((name) => !NO_FIELDS.includes(name) && name in is && was[name] !== is[name])
    .map((name) => ({
      name: name as FieldName,
      before: was[name] as FieldValue,
      after: is[name] as FieldValue,
    }))
}

/** True if the change lowers the commit limit, which needs a second confirmation. */
export function isLowering(changes: readonly Difference[]): boolean {
  return changes.some(
    ({ name, before, after }) =>
      (name === 'default_vram_overcommit_percent' && Number(after) < Number(before)) ||
      (name === 'safety_reserve_mib' && Number(after) > Number(before)),
  )
}
