/**
 * Keeps rows in place: while the pointer or the focus is in a table, rows are neither added, removed nor
 * moved. Pure.
 */

export interface StableRows<R> {
  readonly rows: readonly R[]
  /** Number of pending changes of the list; the cells always show the newest values. */
  readonly pending: number
}

/** Rows keep their places and get their new values; a removed row keeps its last values. */
export function stableRows<R>(
  shown: readonly R[],
  fresh: readonly R[],
  idOf: (row: R) => string,
): StableRows<R> {
  const byId = new Map(fresh.map((row) => [idOf(row), row]))
  const shownIds = new Set(shown.map(idOf))
  const came = fresh.filter((row) => !shownIds.has(idOf(row))).length
  const went = shown.filter((row) => !byId.has(idOf(row))).length
  const moved = came + went > 0 ? 0 : shown.filter((row, at) => idOf(row) !== idOf(fresh[at] as R)).length
  return { rows: shown.map((row) => byId.get(idOf(row)) ?? row), pending: Math.max(came, went, moved) }
}
