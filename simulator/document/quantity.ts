/** Converts quantities of a scenario to the integers of the code. Null: not a valid quantity. */
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'

const MS_PER_UNIT = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

export const DURATION_FORMAT = 'a whole number with a unit: ms, s, m, h or d (90s, 10m)'

/** `10m` → 600000. Whole numbers only (not `1.5h`). */
export function parseDuration(text: string): DurationMs | null {
  const match = /^(\d{1,15})(ms|s|m|h|d)$/.exec(text)
  if (match === null) return null
  const ms = Number(match[1]) * MS_PER_UNIT[match[2] as keyof typeof MS_PER_UNIT]
  return Number.isSafeInteger(ms) ? ms : null
}

/** Formats 600000 as `10m`, with the largest exact unit. */
export function formatDuration(ms: DurationMs): string {
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    if (ms !== 0 && ms % MS_PER_UNIT[unit] === 0) return `${ms / MS_PER_UNIT[unit]}${unit}`
  }
  return ms === 0 ? '0' : `${ms}ms`
}

/** `24Gi` → 24576, `512Mi` → 512. */
export function parseSizeMib(text: string): Mib | null {
  const match = /^(\d{1,12})(Mi|Gi)$/.exec(text)
  if (match === null) return null
  return Number(match[1]) * (match[2] === 'Gi' ? 1024 : 1)
}

const RFC_3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,3}))?(?:([Zz])|([+-])(\d{2}):(\d{2}))$/

/** `2026-01-01T00:00:00Z`, with any offset and up to milliseconds; years 1970 to 9999. No leap seconds. */
export function parseInstant(text: string): Instant | null {
  const match = RFC_3339.exec(text)
  if (match === null) return null
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1, 7).map(Number)
  const ms = Number((match[7] ?? '').padEnd(3, '0'))
  const local = Date.UTC(year, month - 1, day, hour, minute, second, ms)
  // Date.UTC turns 31 February into March; a date that does not round-trip is invalid.
  if (new Date(local).toISOString().slice(0, 19) !== text.slice(0, 19).toUpperCase()) return null
  if (match[8] !== undefined) return local < 0 ? null : local
  const [offsetHours, offsetMinutes] = [Number(match[10]), Number(match[11])]
  if (offsetHours > 23 || offsetMinutes > 59) return null
  const instant = local - (match[9] === '-' ? -1 : 1) * (offsetHours * 60 + offsetMinutes) * 60_000
  return instant < 0 ? null : instant
}

/** Whole numbers from `from` in steps; `to` is included if a step reaches it. */
export interface IntegerRange {
  readonly from: number
  readonly to: number
  readonly step: number
}

export const RANGE_FORMAT = 'a range A..B or A..B:STEP (1..20, 0..200:20)'

/** Parses `1..20` and `0..200:20`; also used by `--seeds` and `--overcommit`. */
export function parseRange(text: string): IntegerRange | null {
  const match = /^(\d{1,10})\.\.(\d{1,10})(?::(\d{1,10}))?$/.exec(text)
  if (match === null) return null
  const range = { from: Number(match[1]), to: Number(match[2]), step: Number(match[3] ?? '1') }
  return range.from <= range.to && range.step > 0 ? range : null
}

export function rangeCount({ from, to, step }: IntegerRange): number {
  return Math.floor((to - from) / step) + 1
}

export function rangeValues(range: IntegerRange): number[] {
  return Array.from({ length: rangeCount(range) }, (_, i) => range.from + i * range.step)
}
