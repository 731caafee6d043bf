/** Formats figures as text. Unknown is a dash, never 0. The text does not depend on the time zone. */

export const UNKNOWN = '—'

export function percent(value: number | null | undefined, digits = 1): string {
  return value === null || value === undefined ? UNKNOWN : `${value.toFixed(digits)}%`
}

export function whole(value: number | null | undefined): string {
  return value === null || value === undefined
    ? UNKNOWN
    : String(Math.round(value)).replaceAll(/\B(?=(\d{3})+(?!\d))/g, ',')
}

/** `1 task`, `5,621 tasks`. */
export function plural(count: number, one: string, many: string): string {
  return `${whole(count)} ${count === 1 ? one : many}`
}

/** MiB below 1 GiB, then GiB, then TiB. */
export function mib(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN
  const size = Math.abs(value)
  if (size < 1_024) return `${whole(value)} MiB`
  if (size < 10_485_760) return `${(value / 1024).toFixed(1)} GiB`
  return `${(value / 1_048_576).toFixed(1)} TiB`
}

/** `3 d 4 h`, `12 min 5 s`, `0.4 s`: the two largest units. */
export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN
  if (value < 10) return `${value === 0 ? '0' : value.toFixed(1)} s`
  const parts: readonly (readonly [number, string])[] = [
    [Math.floor(value / 86_400), 'd'],
    [Math.floor(value / 3_600) % 24, 'h'],
    [Math.floor(value / 60) % 60, 'min'],
    [Math.floor(value) % 60, 's'],
  ]
  const first = parts.findIndex(([count]) => count > 0)
  return parts
    .slice(first, first + 2)
    .filter(([count], at) => at === 0 || count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ')
}

export function secondsSince(at: string | null | undefined, now: number): number | null {
  return at === null || at === undefined ? null : Math.max(0, (now - Date.parse(at)) / 1000)
}

/** `+5.2 pp`, `−3 tasks`, `±0 pp`: a difference with its sign; tasks are whole. */
export function trendWords(by: number | null | undefined, unit: 'pp' | 'tasks'): string {
  if (by === null || by === undefined) return UNKNOWN
  const size = Math.abs(unit === 'tasks' ? Math.round(by) : by)
  return `${size === 0 ? '±' : by > 0 ? '+' : '−'}${unit === 'tasks' ? whole(size) : size} ${unit}`
}

/** The override of a node: `override 20%`, `off` for 0, `inherits 50%` for null. */
export function overcommitWords(override: number | null, effective: number): string {
  if (override === null) return `inherits ${effective}%`
  return override === 0 ? 'off' : `override ${override}%`
}

/** `1:02:03`, with days if there are any: the time since the start of a session or a run. */
export function clockWords(seconds: number | null): string {
  if (seconds === null) return UNKNOWN
  const whole = Math.floor(seconds)
  const two = (value: number): string => String(value).padStart(2, '0')
  const days = Math.floor(whole / 86_400)
  const text = `${Math.floor(whole / 3_600) % 24}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`
  return days === 0 ? text : `${days} d ${text}`
}
