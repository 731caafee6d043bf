export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>

/** Returns `?name=value&…`; empty and missing values are omitted. */
export function queryText(query: Query): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') parameters.set(name, String(value))
  }
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}
