/**
 * The configuration fields as the API describes them (/openapi.json), so that ranges, defaults and meanings
 * are not duplicated here. Pure.
 */
import type { ConfigBody } from '../../controller/api/config/schema.ts'
import { whole } from './figures.ts'

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

export function rangeOf({ choices, min, max, isNullable }: FieldInfo, orEmpty = 'or empty'): string {
  return choices === null
    ? `a whole number from ${whole(min)} to ${whole(max)}${isNullable ? `, ${orEmpty}` : ''}`
    : `one of ${choices.join(', ')}`
}

interface Presentation {
  readonly group: (typeof GROUPS)[number]
  /** Ends in the unit of the field. */
  readonly title: string
}

/** The groups of the settings page, in its order. */
const GROUPS = ['Overcommit', 'Swapping', 'Queue and placement', 'Stopping tasks', 'GPU servers'] as const

const PRESENTED: Readonly<Record<FieldName, Presentation>> = {
  default_vram_overcommit_percent: { group: 'Overcommit', title: 'VRAM overcommit (%)' },
  safety_reserve_mib: { group: 'Overcommit', title: 'Safety reserve per GPU (MiB)' },
  idle_swap_out_seconds: { group: 'Swapping', title: 'Idle time before swap-out (s)' },
  max_residency_seconds: { group: 'Swapping', title: 'Maximum residency under contention (s)' },
  swap_in_aging_seconds: { group: 'Swapping', title: 'Swap-in wait before ranking as P0 (s)' },
  swap_in_probe_seconds: { group: 'Swapping', title: 'Swap-in probe interval (s)' },
  eager_swap_in_seconds: { group: 'Swapping', title: 'Wait before eager swap-in (s)' },
  reservation_after_seconds: { group: 'Queue and placement', title: 'Queue wait before GPU reservation (s)' },
  queue_aging_seconds: { group: 'Queue and placement', title: 'Queue aging interval per priority class (s)' },
  placement_strategy: { group: 'Queue and placement', title: 'Placement strategy' },
  max_tasks_per_gpu: { group: 'Queue and placement', title: 'Maximum tasks per GPU' },
  max_requeues: { group: 'Queue and placement', title: 'Default maximum requeues after short attempts' },
  stop_grace_seconds: { group: 'Stopping tasks', title: 'Default stop grace (s)' },
  max_stop_grace_seconds: { group: 'Stopping tasks', title: 'Maximum stop grace (s)' },
  heartbeat_seconds: { group: 'GPU servers', title: 'GPU server heartbeat interval (s)' },
  run_lease_seconds: { group: 'GPU servers', title: 'Run lease without controller contact (s)' },
}

/** Display name; null: a field of a newer controller, which has only its name in the API. */
export function titleOf(name: FieldName): string | null {
  return Object.hasOwn(PRESENTED, name) ? PRESENTED[name].title : null
}

export interface FieldGroup {
  readonly name: string
  readonly fields: readonly FieldInfo[]
}

/** The fields in groups; those of a newer controller are the last group. */
export function groupsOf(fields: readonly FieldInfo[]): readonly FieldGroup[] {
  const groupOf = ({ name }: FieldInfo): string =>
    Object.hasOwn(PRESENTED, name) ? PRESENTED[name].group : 'Other'
  return [...GROUPS, 'Other']
    .map((name) => ({ name, fields: fields.filter((field) => groupOf(field) === name) }))
    .filter((group) => group.fields.length > 0)
}

export type Read =
  { readonly ok: true; readonly value: FieldValue } | { readonly ok: false; readonly why: string }

/** Parses the entered text; invalid text is rejected rather than converted. */
export function readField(field: FieldInfo, text: string): Read {
  const refused: Read = { ok: false, why: `Enter ${rangeOf(field, 'or leave the field empty')}.` }
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
