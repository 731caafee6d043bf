/** Tables in the format of RFC 4180. Pure. */

export type CsvCell = string | number | null

/** All digits, one line per row; null is an empty cell. */
export function csvOf(rows: readonly (readonly CsvCell[])[]): string {
  return `${rows.map((row) => row.map((cell) => csvCell(String(cell ?? ''))).join(',')).join('\n')}\n`
}

/** Prefixes text that a spreadsheet would take for a formula. */
function csvCell(text: string): string {
  const safe = /^[=+@\t\r]|^-(?!\d)/.test(text) ? `'${text}` : text
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
