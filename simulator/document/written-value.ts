/**
 * Converts checked values back to the notation of a file, for defaults in the documentation and the JSON
 * Schema.
 */
import { formatDuration } from './quantity.ts'
import type { Field, RecordData, Rule } from './rule.ts'

/** Returns JSON. The value must be one that the rule yields; this is not checked. */
export function writtenValue(rule: Rule, value: unknown): unknown {
  if (value === null) return null
  switch (rule.kind) {
    case 'duration':
      return value === 0 ? 0 : formatDuration(value as number)
    case 'instant':
      return new Date(value as number).toISOString().replace('.000Z', 'Z')
    case 'nullable':
      return writtenValue(rule.rule, value)
    case 'list':
      return (value as readonly unknown[]).map((item) => writtenValue(rule.item, item))
    case 'pair': {
      const [first, second] = value as readonly [unknown, unknown]
      return [writtenValue(rule.first, first), writtenValue(rule.second, second)]
    }
    case 'dictionary':
      return mapped(value, () => rule.value)
    case 'record':
      return writtenRecord(rule, value)
    case 'by_key': {
      const key = Object.keys(rule.records).find((name) => Object.hasOwn(value as object, name))
      return key === undefined ? value : writtenValue(rule.records[key]!, value)
    }
    case 'by_value':
      return writtenValue(
        rule.records[String((value as Readonly<Record<string, unknown>>)[rule.key])]!,
        value,
      )
    case 'scalar_or':
      return writtenValue(typeof value === 'object' ? rule.collection : rule.scalar, value)
    case 'integer':
    case 'number':
    case 'text':
    case 'choice':
    case 'boolean':
    case 'size':
    case 'integers':
    case 'json':
      return value
  }
}

/** Returns the default of a field as written in a file, or undefined. */
export function writtenDefault({ rule, presence, fallback, elsewhere }: Field): unknown {
  if (presence === 'required') return undefined
  return fallback === undefined ? elsewhere : writtenValue(rule, fallback)
}

/** Omits fields that have their default. */
function writtenRecord({ fields }: RecordData, value: unknown): unknown {
  const written: Record<string, unknown> = {}
  for (const [key, member] of Object.entries(value as object) as [string, unknown][]) {
    const field = fields[key]
    if (field === undefined || member === undefined) continue
    const text = writtenValue(field.rule, member)
    if (JSON.stringify(text) !== JSON.stringify(writtenDefault(field))) written[key] = text
  }
  return written
}

function mapped(value: unknown, ruleOf: (key: string) => Rule): unknown {
  return Object.fromEntries(
    Object.entries(value as object).map(([key, member]) => [key, writtenValue(ruleOf(key), member)]),
  )
}
