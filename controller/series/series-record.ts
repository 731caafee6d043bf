/** Encodes and decodes rows and their scopes. Null for bytes of another version. */
import { ARCHIVED_COLUMNS, COLUMNS } from './columns.ts'
import { MAX_SCOPES } from './retention.ts'
import { columnOf, rowOf, type Column, type Row } from './row.ts'

/** Key and index of each scope. */
export type ScopeIndexes = readonly (readonly [string, number])[]

export type SeriesRecord =
  { readonly kind: 'row'; readonly row: Row } | { readonly kind: 'scopes'; readonly scopes: ScopeIndexes }

const ROW = 1
const SCOPES = 2
const HEAD_BYTES = 1 + 8 + 4 + 1
const UNIFORM = 0
/** Bytes per number, by the tag of its column. */
const ARRAYS = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array, 8: Float64Array } as const

/**
 * kind, begin of the interval (f64), scopes (u32), columns (u8); then each column: its width in bytes or 0,
 * and its numbers or the single one. Little-endian.
 */
export function encodeRow(row: Row): Uint8Array<ArrayBuffer> {
  const columns = Array.from({ length: COLUMNS }, (_, column) => columnOf(row, column))
  while (columns.length > ARCHIVED_COLUMNS && columns.at(-1) === 0) columns.pop()
  const size = columns.reduce<number>(
    (sum, column) => sum + 1 + (typeof column === 'number' ? 8 : column.byteLength),
    HEAD_BYTES,
  )
  const bytes = new Uint8Array(size)
  const view = new DataView(bytes.buffer)
  bytes[0] = ROW
  view.setFloat64(1, row.at, true)
  view.setUint32(9, row.count, true)
  bytes[13] = columns.length
  let at = HEAD_BYTES
  for (const column of columns) {
    if (typeof column === 'number') {
      bytes[at] = UNIFORM
      view.setFloat64(at + 1, column, true)
      at += 9
    } else {
      bytes[at] = column.BYTES_PER_ELEMENT
      bytes.set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength), at + 1)
      at += 1 + column.byteLength
    }
  }
  return bytes
}

export function encodeScopes(scopes: ScopeIndexes): Uint8Array<ArrayBuffer> {
  const text = new TextEncoder().encode(JSON.stringify(scopes))
  const bytes = new Uint8Array(1 + text.length)
  bytes[0] = SCOPES
  bytes.set(text, 1)
  return bytes
}

/** @param before the previous row, whose columns it may share */
export function decodeRecord(bytes: Uint8Array, before: Row | undefined): SeriesRecord | null {
  if (bytes[0] === SCOPES) return decodeScopes(bytes)
  if (bytes[0] !== ROW || bytes.length < HEAD_BYTES || !isKnown(bytes[13])) return null
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const at = view.getFloat64(1, true)
  const count = view.getUint32(9, true)
  if (count > Math.max(...Object.values(MAX_SCOPES)) || !Number.isInteger(at)) return null
  const decoded = decodeColumns(bytes, view, { columns: bytes[13] as number, count })
  const columns = decoded === null ? null : [...decoded, ...Array<Column>(COLUMNS - decoded.length).fill(0)]
  return columns === null ? null : { kind: 'row', row: rowOf(at, count, columns, before) }
}

function isKnown(columns: number | undefined): boolean {
  return columns !== undefined && columns >= ARCHIVED_COLUMNS && columns <= COLUMNS
}

function decodeColumns(
  bytes: Uint8Array,
  view: DataView,
  { columns: expected, count }: { readonly columns: number; readonly count: number },
): readonly Column[] | null {
  const columns: Column[] = []
  let at = HEAD_BYTES
  while (columns.length < expected) {
    const width = bytes[at]
    if (width === UNIFORM) {
      if (at + 9 > bytes.length) return null
      columns.push(view.getFloat64(at + 1, true))
      at += 9
      continue
    }
    if (width !== 1 && width !== 2 && width !== 4 && width !== 8) return null
    const end = at + 1 + width * count
    if (end > bytes.length) return null
    // Copies: numbers wider than a byte need not be aligned here. A slice of a Buffer would not copy.
    columns.push(
      new ARRAYS[width](bytes.buffer.slice(bytes.byteOffset + at + 1, bytes.byteOffset + end) as ArrayBuffer),
    )
    at = end
  }
  return at === bytes.length ? columns : null
}

function decodeScopes(bytes: Uint8Array): SeriesRecord | null {
  try {
    const scopes: unknown = JSON.parse(new TextDecoder().decode(bytes.subarray(1)))
    return isScopes(scopes) ? { kind: 'scopes', scopes } : null
  } catch {
    return null
  }
}

function isScopes(value: unknown): value is ScopeIndexes {
  return (
    Array.isArray(value) &&
    value.every(
      (pair) =>
        Array.isArray(pair) &&
        pair.length === 2 &&
        typeof pair[0] === 'string' &&
        Number.isInteger(pair[1]) &&
        pair[1] >= 0,
    )
  )
}
