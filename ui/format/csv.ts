/** Tables as RFC 4180 has them. Pure. */

export type CsvCell = string | number | null

/** All digits, a line for each row; null is an empty cell. */
export function csvOf(rows: readonly (readonly CsvCell[])[]): string {
  return `${rows.map((row) => row.map((cell) => csvCell(String(cell ?? ''))).join(',')).join('\n')}\n`
}

/** A name that a spreadsheet would take for a formula is told to be text. */
function csvCell(text: string): string {
  const safe = /^[=+@\t\r]|^-(?!\d)/.test(text) ? `'${text}` : text
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
