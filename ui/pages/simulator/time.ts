/** Formatting of session times. Pure. */
import type { SessionBody } from '../../../controller/api/simulations/session-schema.ts'

export const SPEEDS = [1, 10, 60, 600, null] as const

/** `×60`; null means as fast as possible. */
export function speedWords(speed: number | null): string {
  return speed === null ? 'max' : `×${speed}`
}

/** Upper end of the slider: the end of the session; without an end, beyond the latest time reached. */
export function scrubEnd({
  ends_after_seconds: end,
  virtual_seconds: at,
}: Pick<SessionBody, 'ends_after_seconds' | 'virtual_seconds'>): number {
  return end ?? Math.max(3_600, Math.ceil((at * 1.5) / 3_600) * 3_600)
}

/** `2026-01-01 01:00:00 UTC`: the virtual clock does not depend on the time zone. */
export function virtualInstant(at: string): string {
  return `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`
}

/** Parses `90`, `1:30`, `1:02:03` as seconds; null: invalid. */
export function readClock(text: string): number | null {
  const match = /^(?:(?:(\d{1,6}):)?(\d{1,6}):)?(\d{1,9}(?:\.\d{1,3})?)$/.exec(text.trim())
  if (match === null) return null
  return Number(match[1] ?? 0) * 3_600 + Number(match[2] ?? 0) * 60 + Number(match[3])
}
