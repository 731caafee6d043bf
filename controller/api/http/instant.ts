import type { Instant } from '../../../protocol/units.ts'

/** RFC 3339 in UTC with milliseconds: `2025-11-20T10:47:00.000Z`. */
export function presentInstant(at: Instant): string {
  return new Date(at).toISOString()
}

export function presentInstantOrNull(at: Instant | null): string | null {
  return at === null ? null : presentInstant(at)
}
