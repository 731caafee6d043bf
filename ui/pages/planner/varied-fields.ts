/**
 * The fields of a scenario that can be varied in addition to the percentage, and the values entered for one.
 * Pure.
 */
import { parse } from 'yaml'
import type { SettingsBody } from '../../../controller/api/simulations/sweep-report-schema.ts'
import { MAX_VALUES } from './grid.ts'

export interface VariedField {
  /** Dotted path from the root of the scenario: `fleet.0.count`. */
  readonly path: string
  /** Value in the scenario; null: not set. */
  readonly now: string | null
}

export type VariedValue = SettingsBody[string]

const PARTS = ['config', 'fleet', 'workload', 'clock'] as const
/** Names, and keys that identify an object. */
const LEFT_OUT = ['default_vram_overcommit_percent', 'name', 'id', 'trace', 'generate', 'owner', 'start']
/** A longer list is not usable; the command line takes every field. */
const MAX_FIELDS = 150
/** A larger text would be slow to parse on every key press. */
const MAX_CHARACTERS = 65_536
/** Commonly varied, so they are offered even if the scenario does not set them. */
const ALWAYS = [
  'config.idle_swap_out_seconds',
  'config.safety_reserve_mib',
  'config.max_tasks_per_gpu',
  'config.placement_strategy',
]

/** @param scenario as YAML or JSON text, or as an object; null: not loaded yet */
export function variedFields(scenario: string | object | null): readonly VariedField[] {
  const root = typeof scenario === 'string' ? parsed(scenario) : scenario
  if (root === null) return []
  const written = PARTS.flatMap((part) =>
    leaves((root as Readonly<Record<string, unknown>>)[part], part),
  ).slice(0, MAX_FIELDS)
  const unwritten = ALWAYS.filter((path) => written.every((field) => field.path !== path)).map((path) => ({
    path,
    now: null,
  }))
  return [...written, ...unwritten]
}

/** Grouped by the section of the scenario, in the order of the sections. */
export function partsOf(
  fields: readonly VariedField[],
): readonly (readonly [part: string, fields: readonly VariedField[]])[] {
  return PARTS.map(
    (part) => [part, fields.filter(({ path }) => path.startsWith(`${part}.`))] as const,
  ).filter(([, some]) => some.length > 0)
}

function parsed(text: string): object | null {
  if (text.length > MAX_CHARACTERS) return {}
  try {
    const root: unknown = parse(text)
    return typeof root === 'object' ? root : null
  } catch {
    return null
  }
}

function leaves(value: unknown, path: string): readonly VariedField[] {
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string')
    return [{ path, now: String(value) }]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value as object).flatMap(([key, inside]) =>
    LEFT_OUT.includes(key) || key.includes('.') ? [] : leaves(inside, `${path}.${key}`),
  )
}

export type Values =
  | { readonly ok: true; readonly values: readonly VariedValue[] }
  | { readonly ok: false; readonly why: string }

/**
 * Separated by commas, as for `--set` of the command line: ranges of whole numbers, numbers, true, false,
 * null, or text such as 10m.
 */
export function readValues(text: string): Values {
  const values = new Map<string, VariedValue>()
  for (const part of text.split(',').map((each) => each.trim())) {
    if (part === '')
      return {
        ok: false,
        why:
          text.trim() === ''
            ? 'Enter at least one value, for example 2, 4 or 60..300:60.'
            : 'Remove the extra comma.',
      }
    const range = /^(\d{1,10})\.\.(\d{1,10})(?::(\d{1,10}))?$/.exec(part)
    const [from, to, step] =
      range === null ? [0, 0, 1] : [Number(range[1]), Number(range[2]), Number(range[3] ?? 1)]
    if (step === 0) return { ok: false, why: `${part} has a step of 0.` }
    if (to < from) return { ok: false, why: `${part} ends before it starts.` }
    if ((to - from) / step >= MAX_VALUES) return { ok: false, why: `Enter at most ${MAX_VALUES} values.` }
    if (range === null) values.set(part, valueOf(part))
    else for (let value = from; value <= to; value += step) values.set(String(value), value)
  }
  return values.size > MAX_VALUES
    ? { ok: false, why: `Enter at most ${MAX_VALUES} values.` }
    : { ok: true, values: [...values.values()] }
}

function valueOf(text: string): VariedValue {
  if (text === 'null') return null
  if (text === 'true' || text === 'false') return text === 'true'
  return /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text
}
