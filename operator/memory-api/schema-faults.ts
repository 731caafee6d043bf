/** What a schema of a CustomResourceDefinition refuses, and which unknown fields it drops. */
import type { StructuralSchema } from '../contract/crd.ts'
import type { FieldFault } from '../contract/field-fault.ts'
import { isRecord } from './patches.ts'

/** Faults with the path as the API server writes it: `spec.vramOvercommitPercent`. */
export function schemaFaults(schema: StructuralSchema, value: unknown, path = ''): readonly FieldFault[] {
  const { type } = schema
  if (!isOfType(type, value))
    return [{ path, message: `Invalid value: ${kindOf(value)}: must be of type ${type}` }]
  if (isRecord(value)) return recordFaults(schema, value, path)
  if (Array.isArray(value)) return listFaults(schema, value, path)
  const bound = boundBroken(schema, value)
  return bound === null ? [] : [{ path, message: `Invalid value: ${JSON.stringify(value)}: ${bound}` }]
}

/** A copy without the fields that the schema does not name, as a structural schema prunes them. */
export function pruned(schema: StructuralSchema, value: unknown): unknown {
  const { properties, items } = schema
  if (Array.isArray(value) && items !== undefined) return value.map((item) => pruned(items, item))
  if (!isRecord(value) || properties === undefined) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, field]) => {
      const own = Object.hasOwn(properties, name) ? properties[name] : undefined
      return own === undefined ? [] : [[name, pruned(own, field)]]
    }),
  )
}

function recordFaults(
  { properties = {}, required = [] }: StructuralSchema,
  value: Readonly<Record<string, unknown>>,
  path: string,
): readonly FieldFault[] {
  const missing = required
    .filter((name) => value[name] === undefined)
    .map((name) => ({ path: below(path, name), message: 'Required value' }))
  const wrong = Object.entries(properties).flatMap(([name, schema]) =>
    value[name] === undefined ? [] : schemaFaults(schema, value[name], below(path, name)),
  )
  return [...missing, ...wrong]
}

function listFaults(
  { items, maxItems = Infinity }: StructuralSchema,
  value: readonly unknown[],
  path: string,
): readonly FieldFault[] {
  if (value.length > maxItems)
    return [{ path, message: `Too many: ${value.length}: must have at most ${maxItems} items` }]
  return items === undefined
    ? []
    : value.flatMap((item, index) => schemaFaults(items, item, `${path}[${index}]`))
}

function boundBroken(schema: StructuralSchema, value: unknown): string | null {
  if (schema.enum !== undefined && !schema.enum.includes(value as string))
    return `should be one of ${schema.enum.join(', ')}`
  if (typeof value === 'number') {
    if (value < (schema.minimum ?? -Infinity)) return `should be greater than or equal to ${schema.minimum}`
    if (value > (schema.maximum ?? Infinity)) return `should be less than or equal to ${schema.maximum}`
  }
  if (typeof value === 'string') {
    if (value.length < (schema.minLength ?? 0)) return `should be at least ${schema.minLength} chars long`
    if (value.length > (schema.maxLength ?? Infinity)) return `may not be more than ${schema.maxLength} chars`
    if (schema.pattern !== undefined && !new RegExp(schema.pattern).test(value))
      return `should match '${schema.pattern}'`
  }
  return null
}

function isOfType(type: string, value: unknown): boolean {
  switch (type) {
    case 'object':
      return isRecord(value)
    case 'array':
      return Array.isArray(value)
    case 'integer':
      return Number.isInteger(value)
    default:
      return typeof value === type
  }
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : JSON.stringify(typeof value)
}

function below(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}
