/** A fixed time range from the parameters of an address. Pure. */

/** Range before and after an instant given by `?at=`. */
const AROUND_MS = 30 * 60_000
/** A shorter range has too few samples. */
export const MIN_SPAN_MS = 60_000

/** A fixed range, instead of one that ends now. */
export interface Span {
  readonly from: string
  readonly to: string
  /** The instant that the page was opened for; null: none. */
  readonly at: string | null
}

type Search = Readonly<Record<string, string | readonly string[] | undefined>>

/** null: the range ends now. Invalid parameters are ignored. */
export function spanOf(search: Search): Span | null {
  const at = msOf(search['at'])
  if (at !== null) return { at: textOf(at), from: textOf(at - AROUND_MS), to: textOf(at + AROUND_MS) }
  const [from, to] = [msOf(search['from']), msOf(search['to'])]
  return from === null || to === null || from < 0 || from >= to
    ? null
    : { at: null, from: textOf(from), to: textOf(to) }
}

function msOf(value: string | readonly string[] | undefined): number | null {
  const ms = typeof value === 'string' ? Date.parse(value) : NaN
  return Number.isNaN(ms) ? null : ms
}

/** The text of an instant in an address. */
export function textOf(ms: number): string {
  return new Date(ms).toISOString()
}
