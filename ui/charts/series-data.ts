/** Converts columns of /series to columns of a chart. Pure. */
import type { SeriesBody } from '../../controller/api/observe/series-schema.ts'

export type Column = readonly (number | null)[]

/**
 * Returns x, then one column per name of that scope, in the requested order; a missing series is all gaps.
 */
export function columnsFor(
  body: SeriesBody | undefined,
  names: readonly string[],
  scope = 'cluster',
): readonly Column[] {
  if (body === undefined) return [[], ...names.map(() => [])]
  return [body.x, ...names.map((name) => columnOf(body, scope, name))]
}

function columnOf(body: SeriesBody, scope: string, name: string): Column {
  const found = body.series.find((series) => series.scope === scope && series.name === name)
  return found?.values ?? body.x.map(() => null)
}

/** Converts counts per step to counts per hour. */
export function perHour(column: Column, stepSeconds: number): Column {
  return column.map((value) => (value === null ? null : (value * 3600) / stepSeconds))
}

/** The last, lowest and highest known value; null: none is known. */
export function figuresOf(column: Column): readonly [number | null, number | null, number | null] {
  let [last, min, max]: (number | null)[] = [null, null, null]
  for (const value of column) {
    if (value === null) continue
    last = value
    min = Math.min(min ?? value, value)
    max = Math.max(max ?? value, value)
  }
  return [last as number | null, min as number | null, max as number | null]
}

/** Indexes of the values between two gaps, which no line reaches. */
export function lonelyIndexes(column: ArrayLike<number | null | undefined>): number[] {
  const isKnown = (index: number): boolean => (column[index] ?? null) !== null
  return Array.from({ length: column.length }, (_, index) => index).filter(
    (index) => isKnown(index) && !isKnown(index - 1) && !isKnown(index + 1),
  )
}
