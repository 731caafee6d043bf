/** Pages of a list in memory, in an order by keys: a cursor is the place of the last item of a page. */
import { invalidCursor, readCursorParts, writeCursorParts } from './cursor.ts'

export type Direction = 'asc' | 'desc'
export type Part = number | string
/** The keys of an order: the first difference decides, and the last key makes the order total. */
export type Place = readonly Part[]

export interface KeyedOrder<T> {
  /** Name of the order; a cursor of another one is refused. */
  readonly sort: string
  readonly direction: Direction
  /** Places of one order have the same length and types. */
  readonly placeOf: (item: T) => Place
  /** Types of the parts of a place. */
  readonly types: readonly ('number' | 'string')[]
}

export interface OrderedRest<T> {
  /** Items after the cursor, in order. */
  readonly rest: readonly T[]
  /** Number of items on all pages. */
  readonly total: number
  /** Cursor of the page after the first `count` of the rest; null: it is the last page. */
  cursorAfter(count: number): string | null
}

/**
 * @param cursor null: from the beginning
 * @throws ApiProblem if the cursor is invalid, or belongs to another order
 */
export function inOrder<T>(
  items: Iterable<T>,
  { sort, direction, placeOf, types }: KeyedOrder<T>,
  cursor: string | null,
): OrderedRest<T> {
  const sign = direction === 'asc' ? 1 : -1
  const compare = (a: Place, b: Place): number => sign * byPlace(a, b)
  const after = cursor === null ? null : readPlace(cursor, sort, direction, types)
  const placed = [...items]
    .map((item) => ({ item, place: placeOf(item) }))
    .sort((a, b) => compare(a.place, b.place))
  const rest = after === null ? placed : placed.filter(({ place }) => compare(place, after) > 0)
  return {
    rest: rest.map(({ item }) => item),
    total: placed.length,
    cursorAfter: (count) => {
      const last = rest[count - 1]
      return last === undefined || count >= rest.length
        ? null
        : writeCursorParts([sort, direction, ...last.place])
    },
  }
}

function byPlace(a: Place, b: Place): number {
  for (const [i, one] of a.entries()) {
    const other = b[i] as Part
    if (one !== other) return one < other ? -1 : 1
  }
  return 0
}

function readPlace(
  cursor: string,
  sort: string,
  direction: Direction,
  types: readonly ('number' | 'string')[],
): Place {
  const [ofSort, ofDirection, ...place] = readCursorParts(cursor)
  const isPlace = place.length === types.length && place.every((part, i) => typeof part === types[i])
  if (ofSort !== sort || ofDirection !== direction || !isPlace) throw invalidCursor()
  return place as Part[]
}
