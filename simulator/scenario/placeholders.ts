/** `{node:NAME}` and `{task:NAME}` in operator requests: names that are replaced by ids. */

const PLACEHOLDER = /\{(node|task):([^}]*)\}/g

export interface Placeholder {
  readonly kind: 'node' | 'task'
  readonly name: string
}

/** Returns all placeholders of a text or of the texts in a JSON value. */
export function namesIn(value: unknown): Placeholder[] {
  if (typeof value === 'string')
    return [...value.matchAll(PLACEHOLDER)].map(([, kind, name]) => ({
      kind: kind as Placeholder['kind'],
      name: name!,
    }))
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap(namesIn)
}

/** Returns the value with ids in place of names. Keys of maps are unchanged. */
export function withIds(value: unknown, idOf: (placeholder: Placeholder) => string): unknown {
  if (typeof value === 'string') {
    return value.replaceAll(PLACEHOLDER, (_, kind: Placeholder['kind'], name: string) => idOf({ kind, name }))
  }
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => withIds(item, idOf))
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withIds(member, idOf)]))
}
