/**
 * Which fields of a scenario can be varied beside the percentage, and the values that somebody writes for
 * one. Pure.
 */
import { parse } from 'yaml'
import type { SettingsBody } from '../../../controller/api/schema/sweep-report.ts'
import { MAX_VALUES } from './grid.ts'

export interface VariedField {
  /** Dotted, from the top of the scenario: `fleet.0.count`. */
  readonly path: string
  /** What is written there; null: nothing. */
  readonly now: string | null
}

export type VariedValue = SettingsBody[string]

const PARTS = ['config', 'fleet', 'workload', 'clock'] as const
/** Names, and what stands for a thing as a whole. */
const LEFT_OUT = ['default_vram_overcommit_percent', 'name', 'id', 'trace', 'generate', 'owner', 'start']
/** Beyond this nobody chooses from a list; the command line takes every field. */
const MOST_FIELDS = 150
/** Larger ones would be read at every key. */
const MAX_CHARACTERS = 65_536
/** They are usual to vary, whether they are written or not. */
const ALWAYS = [
  'config.idle_swap_out_seconds',
  'config.safety_reserve_mib',
  'config.max_tasks_per_gpu',
  'config.placement_strategy',
]

/** @param scenario as YAML or JSON text, or as an object; null: not known yet */
export function variedFields(scenario: string | object | null): readonly VariedField[] {
  const root = typeof scenario === 'string' ? parsed(scenario) : scenario
  if (root === null) return []
  const written = PARTS.flatMap((part) =>
    leaves((root as Readonly<Record<string, unknown>>)[part], part),
  ).slice(0, MOST_FIELDS)
  const unwritten = ALWAYS.filter((path) => written.every((field) => field.path !== path)).map((path) => ({
    path,
    now: null,
  }))
  return [...written, ...unwritten]
}

/** By the part of the scenario that they stand in, in the order of its parts. */
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
 * Parted by commas, as `--set` of the command line takes them: ranges of whole numbers, numbers, true, false,
 * null, or words such as 10m.
 */
export function readValues(text: string): Values {
  const values = new Map<string, VariedValue>()
  for (const part of text.split(',').map((each) => each.trim())) {
    if (part === '')
      return {
        ok: false,
        why:
          text.trim() === ''
            ? 'Write at least one value, as 2, 4 or 60..300:60.'
            : 'There is a comma too many.',
      }
    const range = /^(\d{1,10})\.\.(\d{1,10})(?::(\d{1,10}))?$/.exec(part)
    const [from, to, step] =
      range === null ? [0, 0, 1] : [Number(range[1]), Number(range[2]), Number(range[3] ?? 1)]
    if (step === 0) return { ok: false, why: `${part} has a step of 0.` }
    if (to < from) return { ok: false, why: `${part} ends before it begins.` }
    if ((to - from) / step >= MAX_VALUES) return { ok: false, why: `At most ${MAX_VALUES} values.` }
    if (range === null) values.set(part, valueOf(part))
    else for (let value = from; value <= to; value += step) values.set(String(value), value)
  }
  return values.size > MAX_VALUES
    ? { ok: false, why: `At most ${MAX_VALUES} values.` }
    : { ok: true, values: [...values.values()] }
}

function valueOf(text: string): VariedValue {
  if (text === 'null') return null
  if (text === 'true' || text === 'false') return text === 'true'
  return /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text
}
