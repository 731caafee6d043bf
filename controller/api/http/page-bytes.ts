/**
 * Pages are bounded in bytes as well: a page ends before its items take more than this as JSON. One item it
 * always holds.
 */
const PAGE_BYTES = 96 * 1024

function bytesOf(item: object): number {
  return Buffer.byteLength(JSON.stringify(item)) + 1
}

/** The first of them that one page holds. */
export function withinBytes<T extends object>(items: readonly T[]): readonly T[] {
  let bytes = 0
  const end = items.findIndex((item, at) => (bytes += bytesOf(item)) > PAGE_BYTES && at > 0)
  return end < 0 ? items : items.slice(0, end)
}

/** The first of them as they are shown, as many as one page holds. */
export function pageOf<T, B extends object>(all: readonly T[], present: (each: T) => B): readonly B[] {
  const items: B[] = []
  let bytes = 0
  for (const each of all) {
    const item = present(each)
    bytes += bytesOf(item)
    if (bytes > PAGE_BYTES && items.length > 0) break
    items.push(item)
  }
  return items
}

/** One past what a page holds is the most that is presented: to present is work. */
export function presentWithinBytes<T, B extends object>(
  all: readonly T[],
  present: (each: T) => B,
): readonly B[] {
  const items: B[] = []
  for (let [at, bytes] = [0, 0]; at < all.length && (bytes <= PAGE_BYTES || at < 2); at++) {
    const item = present(all[at] as T)
    items.push(item)
    bytes += bytesOf(item)
  }
  return items
}
