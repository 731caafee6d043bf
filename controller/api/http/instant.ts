import type { Instant } from '../../../protocol/units.ts'

/** RFC 3339 in UTC with milliseconds: `2025-11-20T10:47:00.000Z`. */
export function presentInstant(at: Instant): string {
  return new Date(at).toISOString()
}

export function presentInstantOrNull(at: Instant | null): string | null {
  return at === null ? null : presentInstant(at)
}

/** @param text of a time that the schema allows */
export function momentOf(text: string | undefined): Instant | null {
  return text === undefined ? null : Date.parse(text)
}

/**
 * Returns the instant of a time in the form of RFC 3339. Returns null for a date that does not exist, such as
 * the 31st of February, which Date.parse reads as the 3rd of March.
 */
export function instantIn(text: string): Instant | null {
  const at = Date.parse(text)
  const day = Date.parse(`${text.slice(0, 10)}T00:00:00Z`)
  if (Number.isNaN(at) || Number.isNaN(day)) return null
  return new Date(day).toISOString().slice(0, 10) === text.slice(0, 10) ? at : null
}
