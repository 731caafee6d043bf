/** Tables in the format of RFC 4180, with the formats of lists. */
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { invalidField } from './errors.ts'
import { OTHER_MEDIA_TYPES } from './service-schema.ts'
import { oneOf } from './fields-schema.ts'

export type CsvCell = string | number | boolean | null

const CSV_TYPE = 'text/csv; charset=utf-8'

/** Columns by their names, in order. */
export type CsvColumns<T> = Readonly<Record<string, (row: T) => CsvCell>>

/** The line of names, then a line for each row. */
export function* csvOf<T>(columns: CsvColumns<T>, rows: Iterable<T>): Generator<string> {
  yield csvHead(columns)
  for (const row of rows) yield csvRow(columns, row)
}

export function csvHead<T>(columns: CsvColumns<T>): string {
  return csvLine(Object.keys(columns))
}

export function csvRow<T>(columns: CsvColumns<T>, row: T): string {
  return csvLine(Object.values(columns).map((cell) => cell(row)))
}

/** One line; null is an empty cell. */
function csvLine(cells: readonly CsvCell[]): string {
  return `${cells.map((cell) => csvCell(cell === null ? '' : String(cell))).join(',')}\n`
}

/** Prefixes text that a spreadsheet would take for a formula. */
function csvCell(text: string): string {
  const safe = /^[=+@\t\r]|^-(?!\d)/.test(text) ? `'${text}` : text
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** The parameter `format` of a list that has a CSV of all matching rows. */
export const listFormat = oneOf(['json', 'csv'], {
  default: 'json',
  description: 'csv: all matching rows as one file; cannot be combined with limit or cursor',
})

/** The schema of a list whose answer may be CSV. */
export function orCsv<S extends object>(schema: S): S {
  return { ...schema, [OTHER_MEDIA_TYPES]: ['text/csv'] }
}

/** Lines written before other requests get their turn. */
const LINES_A_CHUNK = 500

/**
 * Sends all lines as a file, in pieces.
 * @throws ApiProblem if the request asks for a page
 */
export function sendCsv(
  reply: FastifyReply,
  name: string,
  query: { readonly limit?: number; readonly cursor?: string },
  lines: Iterable<string> | AsyncIterable<string>,
): never {
  for (const parameter of ['limit', 'cursor'] as const) {
    if (query[parameter] !== undefined)
      throw invalidField(
        `/${parameter}`,
        `query parameter ${parameter} cannot be combined with format=csv, which returns all rows`,
      )
  }
  reply.type(CSV_TYPE).header('content-disposition', `attachment; filename="${name}.csv"`)
  return reply.send(Readable.from(chunksOf(lines), { objectMode: false })) as never
}

async function* chunksOf(lines: Iterable<string> | AsyncIterable<string>): AsyncGenerator<string> {
  let chunk: string[] = []
  for await (const line of lines) {
    if (chunk.push(line) < LINES_A_CHUNK) continue
    yield chunk.join('')
    chunk = []
    await new Promise((resolve) => setImmediate(resolve))
  }
  yield chunk.join('')
}
