/** Which rows of a long list are in view: only these are in the document. Pure. */

export interface RowWindow {
  readonly first: number
  /** Exclusive. */
  readonly end: number
}

/** Rows beyond each edge, for quick scrolling. */
const SPARE_ROWS = 10

export function rowWindow(top: number, height: number, rowHeight: number, count: number): RowWindow {
  const first = Math.max(0, Math.min(count, Math.floor(top / rowHeight)) - SPARE_ROWS)
  const end = Math.min(count, Math.ceil((top + height) / rowHeight) + SPARE_ROWS)
  return { first, end: Math.max(first, end) }
}
