/**
 * The fields of the configuration as the interface describes them (/openapi.json): their ranges, defaults and
 * meanings are not retyped here. Pure.
 */
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

/** What it is called by people; null: by its name in the interface alone. */
export function titleOf(name: FieldName): string | null {
  return (TITLES as Readonly<Record<string, string>>)[name] ?? null
}

const TITLES: Readonly<Partial<Record<FieldName, string>>> = {
  default_vram_overcommit_percent: 'Overcommit of VRAM, percent',
  safety_reserve_mib: 'Reserve on every GPU, MiB',
  idle_swap_out_seconds: 'Idle before it may be swapped out, seconds',
  max_residency_seconds: 'Longest stay in VRAM while others wait, seconds',
  swap_in_aging_seconds: 'Waiting swap-in ranks with P0 after, seconds',
  swap_in_probe_seconds: 'Bring back to look whether it works, every so many seconds',
  eager_swap_in_seconds: 'Return to free VRAM after, seconds out',
  reservation_after_seconds: 'Head of the queue reserves GPUs after, seconds',
  queue_aging_seconds: 'Lifted by one priority class every, seconds',
  placement_strategy: 'How GPUs are filled',
  max_tasks_per_gpu: 'Tasks on one GPU at most',
  max_requeues: 'Requeues after short attempts (default of new tasks)',
  heartbeat_seconds: 'GPU servers report every, seconds',
  run_lease_seconds: 'Tasks run on without the controller for, seconds',
}

export type Read =
  { readonly ok: true; readonly value: FieldValue } | { readonly ok: false; readonly why: string }

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
    .map((name) => ({
      name: name as FieldName,
      before: was[name] as FieldValue,
      after: is[name] as FieldValue,
    }))
}

/** The change lowers what may be promised: it asks twice. */
export function isLowering(changes: readonly Difference[]): boolean {
  return changes.some(
    ({ name, before, after }) =>
      (name === 'default_vram_overcommit_percent' && Number(after) < Number(before)) ||
      (name === 'safety_reserve_mib' && Number(after) > Number(before)),
  )
}
