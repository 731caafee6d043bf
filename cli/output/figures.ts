/** Formats quantities for display. */

const MIB_PER_GIB = 1024

/** 8192 → `8Gi`, 500 → `500Mi`, 47988 → `46.9Gi`. */
export function size(mib: number): string {
  if (mib < MIB_PER_GIB) return `${mib}Mi`
  const gib = mib / MIB_PER_GIB
  return `${Number.isInteger(gib) ? gib : gib.toFixed(1)}Gi`
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** 812 → `812 B`, 5242880 → `5.0 MiB`. */
export function byteSize(bytes: number): string {
  let [value, unit] = [bytes, 0]
  while (value >= 1024 && unit < UNITS.length - 1) [value, unit] = [value / 1024, unit + 1]
  return `${unit === 0 ? value : value.toFixed(1)} ${UNITS[unit]}`
}

/** 1 → `1 node`, 2 → `2 nodes`. */
export function plural(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

export function percent(value: number | null): string | null {
  return value === null ? null : `${value.toFixed(1)}%`
}

/** Time since the instant, in the largest unit: `5s`, `12m`, `3h`, `2d`. A future instant is now. */
export function age(instant: string | null, now: number): string | null {
  if (instant === null) return null
  return span(Math.max(0, now - Date.parse(instant)))
}

export function span(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  if (seconds < 120) return `${seconds}s`
  if (seconds < 2 * 3600) return `${Math.floor(seconds / 60)}m`
  if (seconds < 2 * 86_400) return `${Math.floor(seconds / 3600)}h`
  return `${Math.floor(seconds / 86_400)}d`
}

/** Returns `███░░░ 50%`, with a bar of `width` characters. */
export function bar(part: number, whole: number, width: number): string {
  const filled = whole <= 0 ? 0 : Math.min(width, Math.max(0, Math.round((part / whole) * width)))
  return '█'.repeat(filled) + '░'.repeat(width - filled)
}
