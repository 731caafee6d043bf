/** CSV of the reports: one header, one line per row, `\n`, independent of the machine. */
import type { DurationMs } from '../../protocol/units.ts'

export function csvOf(columns: readonly string[], rows: Iterable<readonly (string | number)[]>): string {
  let text = csvLine(columns)
  for (const row of rows) text += csvLine(row)
  return text
}

export function csvLine(cells: readonly (string | number)[]): string {
  return `${cells.map(cellOf).join(',')}\n`
}

/** Text of a user. Prevents spreadsheets from reading it as a formula. */
export function writtenText(text: string): string {
  return /^[=+@\t\r]|^-(?!\d)/.test(text) ? `'${text}` : text
}

/** 1500 → `1.500`. */
export function seconds(ms: DurationMs): string {
  const whole = Math.floor(ms / 1000)
  return `${whole}.${String(ms - whole * 1000).padStart(3, '0')}`
}

/** RFC 4180: quoted if necessary. */
function cellOf(value: string | number): string {
  const text = String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
