/** Output formats: a table for people; JSON, JSON lines or YAML for programs. */
import stringWidth from 'string-width'
import type { OutputFormat } from './formats.ts'
import { paletteOf, visible, visibleJson, type Palette } from './terminal-text.ts'

/** Destination: stdout, or a buffer in tests. */
export interface Out {
  write(text: string): unknown
  readonly isTTY?: boolean
  /** Width of a terminal. */
  readonly columns?: number
}

export interface Column<T> {
  readonly title: string
  /** Shown by `-o wide` only. */
  readonly isWide?: boolean
  readonly isNumber?: boolean
  /** null is shown as a dash. */
  of(row: T): string | number | null
  /** Replaces `of` on a terminal on which the table would be too wide. */
  brief?(row: T): string | number | null
  readonly colour?: (text: string, row: T, palette: Palette) => string
}

/** A label and its value; several values are printed on separate lines. */
export type Field = readonly [label: string, value: string | number | null | readonly string[]]

export async function printList<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  format: OutputFormat,
  out: Out = process.stdout,
): Promise<void> {
  if (format === 'table' || format === 'wide')
    out.write(tableOf(rows, columns, format === 'wide', paletteOf(out), widthOf(out)))
  else if (format === 'jsonl') for (const row of rows) out.write(`${visibleJson(JSON.stringify(row))}\n`)
  else out.write(await documentOf(rows, format))
}

/** Table and wide print one field per line. */
export async function printOne(
  value: object,
  fields: readonly Field[],
  format: OutputFormat,
  out: Out = process.stdout,
): Promise<void> {
  if (format === 'table' || format === 'wide') out.write(fieldsOf(fields, paletteOf(out)))
  else if (format === 'jsonl') out.write(`${visibleJson(JSON.stringify(value))}\n`)
  else out.write(await documentOf(value, format))
}

/** Prints one line of text for people, the changed object for programs. */
export async function printDone(
  value: object,
  text: string,
  format: OutputFormat,
  out: Out = process.stdout,
): Promise<void> {
  if (format === 'table' || format === 'wide') out.write(`${visible(text)}\n`)
  else await printOne(value, [], format, out)
}

/** A file or a pipe has no width. */
function widthOf({ isTTY, columns }: Out): number {
  return isTTY === true && columns !== undefined && columns > 0 ? columns : Infinity
}

/** Cuts a longer text, and marks the cut. */
export function cutTo(length: number, text: string): string {
  const characters = [...text]
  return characters.length <= length ? text : `${characters.slice(0, length - 1).join('')}…`
}

/** Columns are as wide as their content, with two spaces between. */
export function tableOf<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  isWide: boolean,
  palette: Palette,
  maxWidth = Infinity,
): string {
  const shown = columns.filter((column) => isWide || column.isWide !== true)
  const widthsOf = (lines: readonly (readonly string[])[]) =>
    shown.map(({ title }, at) => Math.max(title.length, ...lines.map((line) => stringWidth(line[at] ?? ''))))
  const whole = rows.map((row) => shown.map((column) => textOf(column.of(row))))
  const isTooWide = widthsOf(whole).reduce((sum, width) => sum + width + 2, -2) > maxWidth
  const cells = isTooWide
    ? rows.map((row) => shown.map((column) => textOf((column.brief ?? column.of)(row))))
    : whole
  const widths = widthsOf(cells)
  const lines = [
    palette.bold(
      lineOf(shown.map(({ title, isNumber }, at) => padded(title, widths[at] ?? 0, isNumber === true))),
    ),
    ...rows.map((row, index) =>
      lineOf(
        shown.map((column, at) => {
          const text = cells[index]?.[at] ?? ''
          const cell = padded(text, widths[at] ?? 0, column.isNumber === true)
          return column.colour === undefined
            ? cell
            : cell.replace(text, () => column.colour?.(text, row, palette) ?? text)
        }),
      ),
    ),
  ]
  return lines.map((line) => `${line}\n`).join('')
}

function fieldsOf(fields: readonly Field[], palette: Palette): string {
  const width = Math.max(...fields.map(([label]) => visible(label).length))
  return fields
    .map(([label, value]) => {
      const lines = Array.isArray(value)
        ? (value as readonly string[]).map(textOf)
        : [textOf(value as string | number | null)]
      return (
        `${palette.bold(visible(label).padEnd(width))}  ` +
        `${(lines.length === 0 ? ['-'] : lines).join(`\n${' '.repeat(width + 2)}`)}\n`
      )
    })
    .join('')
}

function textOf(value: string | number | null): string {
  if (value === null || value === '') return '-'
  return visible(String(value))
}

function lineOf(cells: readonly string[]): string {
  return cells.join('  ').trimEnd()
}

function padded(text: string, width: number, isNumber: boolean): string {
  const blanks = ' '.repeat(Math.max(0, width - stringWidth(text)))
  return isNumber ? `${blanks}${text}` : `${text}${blanks}`
}

async function documentOf(value: unknown, format: 'json' | 'yaml'): Promise<string> {
  if (format === 'json') return `${visibleJson(JSON.stringify(value, null, 2))}\n`
  const { Document, visit } = await import('yaml')
  const document = new Document(value, { aliasDuplicateObjects: false })
  // Only double-quoted strings can escape every character.
  visit(document, {
    Scalar(_key, scalar) {
      if (typeof scalar.value === 'string' && visible(scalar.value) !== scalar.value)
        scalar.type = 'QUOTE_DOUBLE'
    },
  })
  return visibleJson(document.toString({ lineWidth: 0 }))
}
