/**
 * Query parameters arrive as text. Where the schema wants a number or a boolean, exactly written ones become
 * one; all else stays text.
 */

interface QuerySchema {
  readonly properties?: Readonly<Record<string, { readonly type?: unknown }>>
}

/** Changes a query in place. What could not be read is left for the schema to refuse. */
export type QueryReader = (query: Record<string, unknown>) => void

/** The largest integer that a number can hold has 16 digits; the schema refuses what is larger. */
const INTEGER = /^-?(?:0|[1-9]\d{0,15})$/

/** @returns null when all parameters are texts. */
export function queryReader(schema: QuerySchema): QueryReader | null {
  const typed = Object.entries(schema.properties ?? {}).filter(
    ([, { type }]) => type === 'integer' || type === 'boolean',
  )
  if (typed.length === 0) return null
  return (query) => {
    for (const [name, { type }] of typed) {
      const value = query[name]
      if (typeof value !== 'string') continue
      if (type === 'integer' && INTEGER.test(value)) query[name] = Number(value)
      if (type === 'boolean' && (value === 'true' || value === 'false')) query[name] = value === 'true'
    }
  }
}
