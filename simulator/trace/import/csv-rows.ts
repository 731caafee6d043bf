import { pipeline, Readable } from 'node:stream'
import { CsvError, type InfoRecord, parse } from 'csv-parse'
import type { FileBytes } from '../file-bytes.ts'
import type { ImportLog } from './importer.ts'
import { TraceError } from '../trace-error.ts'

export interface CsvRow<Column extends string> {
  readonly line: number
  /** Trimmed. An optional column that the file lacks is empty. */
  readonly cells: Readonly<Record<Column, string>>
}

const MAX_ROW_BYTES = 1_048_576

export interface CsvColumns<Required extends string, Optional extends string> {
  readonly required: readonly Required[]
  readonly optional?: readonly Optional[]
  /** At least one column of each of these groups is present. All of them are in `optional` as well. */
  readonly anyOf?: ReadonlyArray<readonly Optional[]>
}

export interface CsvDialect {
  /** One character. Default: a comma. */
  readonly delimiter?: string
  /** False: a quote is an ordinary character. Default: true. */
  readonly hasQuotes?: boolean
  /** Normalizes a name in the header for the lookup. */
  readonly nameOf?: (header: string) => string
  /** Display name of a missing column. */
  readonly labelOf?: (column: string) => string
}

/**
 * The rows of a CSV file with a header, streamed: quotes, CRLF and a byte order mark are supported, blank
 * lines skipped. Every row is counted in `log`; one with more or fewer cells than the header is dropped
 * there. Throws TraceError if required columns are missing (with all names) or quotes are broken (with the
 * line).
 */
export async function* readCsv<Required extends string, Optional extends string = never>(
  source: FileBytes,
  columns: CsvColumns<Required, Optional>,
  log: Pick<ImportLog, 'row' | 'drop'>,
  dialect: CsvDialect = {},
): AsyncGenerator<CsvRow<Required | Optional>> {
  let header: readonly string[] | undefined
  let places: ReadonlyArray<readonly [Required | Optional, number]> = []
  for await (const { line, record } of records(source, dialect)) {
    if (header === undefined) {
      header = dialect.nameOf === undefined ? record : record.map(dialect.nameOf)
      places = columnPlaces(source.file, header, columns, record, dialect.labelOf)
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
  if (header === undefined) {
    const needed = [...columns.required, ...(columns.anyOf ?? []).map((group) => group.join(' or '))]
    throw new TraceError({ file: source.file }, `is empty: needs columns ${needed.join(', ')}`)
  }
}

interface NumberedRecord {
  readonly line: number
  readonly record: readonly string[]
}

async function* records(
  source: FileBytes,
  { delimiter = ',', hasQuotes = true }: CsvDialect,
): AsyncGenerator<NumberedRecord> {
  const parser = parse({
    bom: true,
    trim: true,
    delimiter,
    quote: hasQuotes ? '"' : null,
    skip_empty_lines: true,
    relax_column_count: true,
    max_record_size: MAX_ROW_BYTES,
    // The library's type is string[], although cells may be anything.
    on_record: ((record: string[], { lines }: InfoRecord): NumberedRecord => ({
      line: lines,
      record,
    })) as never,
  })
  // Errors arrive at the reader of the parser.
  pipeline(Readable.from(source.chunks, { objectMode: true }), parser, () => {})
  try {
    for await (const record of parser as AsyncIterable<NumberedRecord>) yield record
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    const line = (error as { lines?: unknown }).lines
    throw new TraceError(
      typeof line === 'number' ? { file: source.file, line } : { file: source.file },
      `is not CSV: ${error.message}`,
      {
        cause: error,
      },
    )
  }
}

function columnPlaces<Required extends string, Optional extends string>(
  file: string,
  header: readonly string[],
  { required, optional = [], anyOf = [] }: CsvColumns<Required, Optional>,
  written: readonly string[],
  labelOf: (column: string) => string = (column) => column,
): ReadonlyArray<readonly [Required | Optional, number]> {
  const missing = [
    ...required.filter((column) => !header.includes(column)).map(labelOf),
    ...anyOf
      .filter((group) => !group.some((column) => header.includes(column)))
      .map((group) => group.join(' or ')),
  ]
  if (missing.length > 0) {
    throw new TraceError(
      { file, line: 1 },
      `has no column ${missing.join(', ')} (its columns: ${shownHeader(written)})`,
    )
  }
  const places = [...required, ...optional].map((column) => [column, header.indexOf(column)] as const)
  const twice = places.find(([column, place]) => place !== -1 && header.lastIndexOf(column) !== place)
  if (twice !== undefined) throw new TraceError({ file, line: 1 }, `has column ${labelOf(twice[0])} twice`)
  return places
}

const MAX_HEADER_CHARACTERS = 500

function shownHeader(header: readonly string[]): string {
  const text = header.join(', ')
  return text.length <= MAX_HEADER_CHARACTERS ? text : `${text.slice(0, MAX_HEADER_CHARACTERS)}…`
}
