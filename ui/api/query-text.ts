export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>

/** `?name=value&…`; what is empty or not there is left out. */
export function queryText(query: Query): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') parameters.set(name, String(value))
  }
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}
