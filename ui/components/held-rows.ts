/** Rows that hold still: while somebody reads or aims at a table, no row comes, goes or moves. Pure. */

export interface HeldRows<R> {
  readonly rows: readonly R[]
  /** How many changes of the list wait; what a row says is always the newest. */
  readonly pending: number
}

/** Rows keep their places and take their new figures; who has left stays as he was last. */
export function holdRows<R>(shown: readonly R[], fresh: readonly R[], idOf: (row: R) => string): HeldRows<R> {
  const byId = new Map(fresh.map((row) => [idOf(row), row]))
  const shownIds = new Set(shown.map(idOf))
  const came = fresh.filter((row) => !shownIds.has(idOf(row))).length
  const went = shown.filter((row) => !byId.has(idOf(row))).length
  const moved = came + went > 0 ? 0 : shown.filter((row, at) => idOf(row) !== idOf(fresh[at] as R)).length
  return { rows: shown.map((row) => byId.get(idOf(row)) ?? row), pending: Math.max(came, went, moved) }
}
