/** Query parameters arrive as text. Where the schema wants a number or a boolean, exactly written ones become one; all else stays text. */

interface QuerySchema {
  readonly properties?: Readonly<Record<string, { readonly type?: unknown }>>
}

const INTEGER = /^-?(?:0|[1-9]\d{0,14})$/

/** Changes `query` in place. What could not be read is left for the schema to refuse. */
export function readQueryValues(query: Record<string, unknown>, schema: QuerySchema): void {
  for (const [name, { type }] of Object.entries(schema.properties ?? {})) {
    const value = query[name]
    if (typeof value !== 'string') continue
    if (type === 'integer' && INTEGER.test(value)) query[name] = Number(value)
    if (type === 'boolean' && (value === 'true' || value === 'false')) query[name] = value === 'true'
  }
}
