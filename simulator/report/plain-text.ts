/** Numbers as in the summaries: no locale, and no rounding that differs between machines. */

/** 75 → `75.0 s`, 5400 → `90.0 min`, 86400 → `24.0 h`. */
export function shownSeconds(seconds: number): string {
  if (seconds < 120) return `${seconds.toFixed(1)} s`
  return seconds < 7200 ? `${(seconds / 60).toFixed(1)} min` : shownHours(seconds)
}

export function shownPercent(percent: number | null): string {
  return percent === null ? '–' : `${percent.toFixed(1)}%`
}

export function shownNumber(value: number | null, digits: number): string {
  return value === null ? '–' : value.toFixed(digits)
}

function shownHours(seconds: number): string {
  return seconds < 172_800 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86_400).toFixed(1)} d`
}

/** Columns side by side: the first left-aligned, the others right-aligned. */
export function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  )
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ')
  return rows.map((row) => `${line(row).trimEnd()}\n`).join('')
}

/** One fact per line, with names in a column. */
export function factsOf(facts: readonly (readonly [name: string, value: string])[]): string {
  const width = Math.max(...facts.map(([name]) => name.length))
  return facts.map(([name, value]) => `${name.padEnd(width)}  ${value}\n`).join('')
}
