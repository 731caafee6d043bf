/** Reads objects of unknown origin: a field of another type counts as missing, and is undefined. */

export type Fields = Readonly<Record<string, unknown>>

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function fieldsAt(value: unknown, ...path: readonly string[]): Fields {
  const found = at(value, path)
  return isFields(found) ? found : {}
}

export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  const found = at(value, path)
  return typeof found === 'string' ? found : undefined
}

export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = at(value, path)
  return Array.isArray(found) ? found : []
}

/** A whole number, also as a text: quantities of whole GPUs and labels are texts. */
export function wholeAt(value: unknown, ...path: readonly string[]): number | undefined {
  const found = at(value, path)
  const number = typeof found === 'string' && /^\d{1,15}$/.test(found) ? Number(found) : found
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : undefined
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (found, name) => (isFields(found) && Object.hasOwn(found, name) ? found[name] : undefined),
    value,
  )
}
