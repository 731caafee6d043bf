/**
 * One interval of all scopes of a table, packed: a column of equal numbers is one number, others use the
 * fewest bytes that hold the largest, and a column equal to the one of the previous row is shared with it.
 * Nothing is rounded.
 */
import type { Instant } from '../../protocol/units.ts'
import { COLUMNS } from './columns.ts'

export type Column = number | Uint8Array | Uint16Array | Uint32Array | Float64Array

export interface Row {
  /** Begin of the interval. */
  readonly at: Instant
  /** Scopes from this index on did not exist yet. */
  readonly count: number
  /** With few scopes all columns are in one array, one after the other; `columns` is then empty. */
  readonly dense: Float64Array | null
  readonly columns: readonly Column[]
  /** Approximate memory, without what it shares with the previous row. */
  readonly bytes: number
}

/** Up to this number of scopes one array per row takes less memory than one per column. */
const DENSE_SCOPES = 16
const ROW_BYTES = 120
/** Overhead of an array. */
const ARRAY_BYTES = 120

/** @param values column by column, `stride` numbers each */
export function packRow(
  at: Instant,
  values: Float64Array,
  stride: number,
  count: number,
  before: Row | undefined,
): Row {
  if (count <= DENSE_SCOPES) {
    const dense = new Float64Array(COLUMNS * count)
    for (let column = 0; column < COLUMNS; column++) {
      for (let i = 0; i < count; i++) dense[column * count + i] = values[column * stride + i] as number
    }
    return denseRow(at, count, dense)
  }
  const columns: Column[] = []
  for (let column = 0; column < COLUMNS; column++) {
    columns.push(
      packColumn(values.subarray(column * stride, column * stride + count), before?.columns[column]),
    )
  }
  while (columns.at(-1) === 0) columns.pop()
  return { at, count, dense: null, columns, bytes: bytesOf(columns, before) }
}

/** Columns at the end that are 0 for every scope take no memory. */
function denseRow(at: Instant, count: number, all: Float64Array): Row {
  let columns = COLUMNS
  while (columns > 0 && isZero(all.subarray((columns - 1) * count, columns * count))) columns -= 1
  const dense = all.slice(0, columns * count)
  return { at, count, dense, columns: [], bytes: ROW_BYTES + ARRAY_BYTES + dense.byteLength }
}

function isZero(values: Float64Array): boolean {
  return values.every((value) => value === 0)
}

function packColumn(values: Float64Array, before: Column | undefined): Column {
  const first = values[0] as number
  let min = first
  let max = first
  let isLikeBefore = typeof before === 'object' && before.length === values.length
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number
    if (value < min) min = value
    if (value > max) max = value
    if (isLikeBefore && (before as Uint8Array)[i] !== value) isLikeBefore = false
  }
  if (min === max) return first
  return isLikeBefore ? (before as Column) : narrowest(values, min, max)
}

function narrowest(values: Float64Array, min: number, max: number): Column {
  if (min < 0 || max > 0xffff_ffff || !Number.isInteger(max)) return values.slice()
  if (max <= 0xff) return Uint8Array.from(values)
  return max <= 0xffff ? Uint16Array.from(values) : Uint32Array.from(values)
}

/** Returns a row read from the archive; equal columns are shared with the previous row. */
export function rowOf(at: Instant, count: number, columns: readonly Column[], before: Row | undefined): Row {
  if (count > DENSE_SCOPES) {
    const shared = columns.map((column, place) =>
      isEqual(column, before?.columns[place]) ? (before?.columns[place] as Column) : column,
    )
    while (shared.at(-1) === 0) shared.pop()
    return { at, count, dense: null, columns: shared, bytes: bytesOf(shared, before) }
  }
  const dense = new Float64Array(COLUMNS * count)
  columns.forEach((column, place) => {
    if (typeof column === 'number') dense.fill(column, place * count, (place + 1) * count)
    else dense.set(column, place * count)
  })
  return denseRow(at, count, dense)
}

function isEqual(column: Column, other: Column | undefined): boolean {
  if (typeof column === 'number' || typeof other !== 'object' || column.length !== other.length) return false
  for (let i = 0; i < column.length; i++) if (column[i] !== other[i]) return false
  return true
}

function bytesOf(columns: readonly Column[], before: Row | undefined): number {
  let bytes = ROW_BYTES + 8 * columns.length
  columns.forEach((column, place) => {
    if (typeof column === 'object' && column !== before?.columns[place])
      bytes += ARRAY_BYTES + column.byteLength
  })
  return bytes
}

export function columnOf(row: Row, column: number): Column {
  const { dense, count } = row
  if (dense === null) return row.columns[column] ?? 0
  return column * count < dense.length ? dense.subarray(column * count, (column + 1) * count) : 0
}

/** Adds one column of the scopes at `indexes` to `sums`, from `offset` on; an index of -1 is skipped. */
export function addColumn(
  row: Row,
  column: number,
  indexes: Int32Array,
  sums: Float64Array,
  offset: number,
): void {
  const { count, dense } = row
  const packed = dense ?? row.columns[column] ?? 0
  const start = dense === null ? 0 : column * count
  if (dense !== null && start >= dense.length) return
  for (let i = 0; i < indexes.length; i++) {
    const index = indexes[i] as number
    if (index < 0 || index >= count) continue
    sums[offset + i] =
      (sums[offset + i] as number) + (typeof packed === 'number' ? packed : (packed[start + index] as number))
  }
}
