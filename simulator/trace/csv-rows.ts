import { pipeline, Readable } from 'node:stream'
import { CsvError, type InfoRecord, parse } from 'csv-parse'
import type { FileBytes } from './file-bytes.ts'
import type { ImportLog } from './importer.ts'
import { TraceError } from './trace-error.ts'

export interface CsvRow<Column extends string> {
  readonly line: number
  /** Trimmed. An optional column that the file does not have is empty. */
  readonly cells: Readonly<Record<Column, string>>
}

const MAX_ROW_BYTES = 1_048_576

/**
 * The rows of a CSV file with a header, streamed: quotes, CRLF and a byte order mark are understood, blank lines skipped. Every row is counted in `log`;
 * one with more or fewer cells than the header is dropped there. Throws TraceError when required columns are missing (naming them all) or quotes
 * are broken (naming the line).
 */
export async function* readCsv<Required extends string, Optional extends string = never>(
  source: FileBytes,
  columns: { readonly required: readonly Required[]; readonly optional?: readonly Optional[] },
  log: Pick<ImportLog, 'row' | 'drop'>,
): AsyncGenerator<CsvRow<Required | Optional>> {
  let header: readonly string[] | undefined
  let places: ReadonlyArray<readonly [Required | Optional, number]> = []
  for await (const { line, record } of records(source)) {
    if (header === undefined) {
      header = record
      places = columnPlaces(source.file, header, columns.required, columns.optional ?? [])
      continue
    }
    log.row()
    if (record.length !== header.length) {
      log.drop('wrong_number_of_columns')
      continue
    }
    const cells = {} as Record<Required | Optional, string>
    for (const [column, place] of places) cells[column] = place === -1 ? '' : record[place]!
    yield { line, cells }
  }
  if (header === undefined) throw new TraceError({ file: source.file }, `is empty: needs columns ${columns.required.join(', ')}`)
}

interface NumberedRecord {
  readonly line: number
  readonly record: readonly string[]
}

async function* records(source: FileBytes): AsyncGenerator<NumberedRecord> {
  const parser = parse({
    bom: true,
    trim: true,
    skip_empty_lines: true,
    relax_column_count: true,
    max_record_size: MAX_ROW_BYTES,
    // Its type says string[] for what may be anything.
    on_record: ((record: string[], { lines }: InfoRecord): NumberedRecord => ({ line: lines, record })) as never,
  })
  // Its errors arrive at the reader of the parser.
  pipeline(Readable.from(source.chunks, { objectMode: true }), parser, () => {})
  try {
    for await (const record of parser as AsyncIterable<NumberedRecord>) yield record
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    const line = (error as { lines?: unknown }).lines
    throw new TraceError(typeof line === 'number' ? { file: source.file, line } : { file: source.file }, `is not CSV: ${error.message}`, {
      cause: error,
    })
  }
}

function columnPlaces<Required extends string, Optional extends string>(
  file: string,
  header: readonly string[],
  required: readonly Required[],
  optional: readonly Optional[],
): ReadonlyArray<readonly [Required | Optional, number]> {
  const missing = required.filter((column) => !header.includes(column))
  if (missing.length > 0) {
    throw new TraceError({ file, line: 1 }, `has no column ${missing.join(', ')} (its columns: ${header.join(', ')})`)
  }
  const places = [...required, ...optional].map((column) => [column, header.indexOf(column)] as const)
  const twice = places.find(([column, place]) => place !== -1 && header.lastIndexOf(column) !== place)
  if (twice !== undefined) throw new TraceError({ file, line: 1 }, `has column ${twice[0]} twice`)
  return places
}

const NUMBER = /^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$/

/** A finite number in plain decimal or scientific notation, or null and the row dropped: `no_COLUMN` when empty, otherwise `bad_COLUMN`. */
export function numberCell<Column extends string>(row: CsvRow<Column>, column: Column, log: Pick<ImportLog, 'drop'>): number | null {
  const text = row.cells[column]
  const number = NUMBER.test(text) ? Number(text) : NaN
  if (number > -Infinity && number < Infinity) return number
  log.drop(text === '' ? `no_${column}` : `bad_${column}`)
  return null
}

/** A whole number of `least` to `most`, or null and the row dropped as `numberCell` does. */
export function wholeCell<Column extends string>(
  row: CsvRow<Column>,
  column: Column,
  least: number,
  most: number,
  log: Pick<ImportLog, 'drop'>,
): number | null {
  const number = numberCell(row, column, log)
  if (number === null || (Number.isSafeInteger(number) && number >= least && number <= most)) return number
  log.drop(`bad_${column}`)
  return null
}

/** 3,000 years: seconds up to here are exact in ms. */
const MAX_SECONDS = 100_000_000_000

/** Seconds as whole ms, or null and the row dropped as `numberCell` does. May be negative. */
export function secondsCell<Column extends string>(row: CsvRow<Column>, column: Column, log: Pick<ImportLog, 'drop'>): number | null {
  const seconds = numberCell(row, column, log)
  if (seconds === null || (seconds >= -MAX_SECONDS && seconds <= MAX_SECONDS)) return seconds === null ? null : Math.round(seconds * 1000)
  log.drop(`bad_${column}`)
  return null
}
