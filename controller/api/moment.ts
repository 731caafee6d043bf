/** Instants in query parameters. */
import type { Instant } from '../../protocol/units.ts'
import { invalidField } from './errors.ts'

/** The schema has seen to the form; that there is such a day is left. @throws ApiProblem invalid_request. */
export function momentOf(name: string, text: string | undefined): Instant | null {
  if (text === undefined) return null
  const at = instantIn(text)
  if (at === null)
    throw invalidField(
      `/${name}`,
      `query parameter ${name} must be a time in UTC such as 2026-01-31T08:00:00Z, got "${text}"`,
    )
  return at
}

/**
 * Of a time in the form of RFC 3339; null for one that there is not, such as the 31st of February, which
 * Date.parse takes for the 3rd of March.
 */
export function instantIn(text: string): Instant | null {
  const at = Date.parse(text)
  const day = Date.parse(`${text.slice(0, 10)}T00:00:00Z`)
  if (Number.isNaN(at) || Number.isNaN(day)) return null
  return new Date(day).toISOString().slice(0, 10) === text.slice(0, 10) ? at : null
}
