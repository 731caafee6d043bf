/**
 * In-place edits of short lists on hot paths. `splice` makes a new array for what it removes, and a list
 * whose length is set is cut by a slow call that also gives its room back, to be asked for again by the next
 * push; these do neither.
 */

export function removeAt<T>(list: T[], at: number): void {
  const last = list.length - 1
  if (at < 0 || at > last) return
  for (let i = at; i < last; i++) list[i] = list[i + 1] as T
  list.pop()
}

export function insertAt<T>(list: T[], at: number, item: T): void {
  list.push(item)
  for (let i = list.length - 1; i > at; i--) list[i] = list[i - 1] as T
  list[at] = item
}

/** Takes everything out. */
export function clear(list: unknown[]): void {
  while (list.length > 0) list.pop()
}
