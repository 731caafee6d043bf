/**
 * Cells of a row as values. A cell without a value drops the row: `no_COLUMN` if it is empty or means "no
 * value", otherwise `bad_COLUMN`.
 */
import type { CsvRow } from './csv-rows.ts'
import type { ImportLog } from './importer.ts'
import { dateTimeOf, isNothing, numberOf, unitsToMs } from './source-values.ts'

type DropLog = Pick<ImportLog, 'drop'>

/** Null, and the row dropped, if the cell has no value. */
export function textCell<Column extends string>(
  row: CsvRow<Column>,
  column: Column,
  log: DropLog,
): string | null {
  const text = row.cells[column]
  if (!isNothing(text)) return text
  log.drop(`no_${column}`)
  return null
}

/** A whole number of `least` to `most`, or null and the row dropped. */
export function wholeCell<Column extends string>(
  row: CsvRow<Column>,
  column: Column,
  least: number,
  most: number,
  log: DropLog,
): number | null {
  return cellOf((text) => wholeOf(text, least, most))(row, column, log)
}

/** Seconds as whole ms, or null and the row dropped. May be negative. */
export const secondsCell = cellOf(secondsOf)

/** A date and time, or seconds since any zero, as whole ms; or null and the row dropped. */
export const instantCell = cellOf((text) => secondsOf(text) ?? dateTimeOf(text))

function cellOf<T>(read: (text: string) => T | null) {
  return <Column extends string>(row: CsvRow<Column>, column: Column, log: DropLog): T | null => {
    const text = row.cells[column]
    const value = read(text)
    if (value === null) log.drop(isNothing(text) ? `no_${column}` : `bad_${column}`)
    return value
  }
}

export function wholeOf(text: string, least: number, most: number): number | null {
  const number = numberOf(text)
  return number !== null && Number.isSafeInteger(number) && number >= least && number <= most ? number : null
}

function secondsOf(text: string): number | null {
  const seconds = numberOf(text)
  return seconds === null ? null : unitsToMs(seconds, 1)
}
