/** The duration of a job, from the times in its source. */
import type { DurationMs, Instant } from '../../../protocol/units.ts'
import type { ImportLog } from './importer.ts'

/** 300 years; a longer duration is an error of the source. */
const LONGEST_MS = 9_467_280_000_000

/** Descriptions of the reasons below. */
export const RESIDENCE_REASONS = {
  zero_duration: 'it was present for less than 1 ms',
  end_before_start: 'its end is before its start',
  too_long: 'it was present for more than 300 years',
} as const

/** Null, and the row dropped, if the duration is invalid. */
export function residenceBetween(
  startMs: Instant,
  endMs: Instant,
  log: Pick<ImportLog, 'drop'>,
): DurationMs | null {
  return residenceOf(endMs - startMs, log)
}

export function residenceOf(ms: DurationMs, log: Pick<ImportLog, 'drop'>): DurationMs | null {
  if (ms >= 1 && ms <= LONGEST_MS) return ms
  log.drop(ms < 0 ? 'end_before_start' : ms < 1 ? 'zero_duration' : 'too_long')
  return null
}
