/**
 * In-place edits of short lists on hot paths. `splice` allocates an array for the removed elements, and
 * setting `length` is a slow call that also frees capacity, which the next push allocates again; these
 * functions do neither.
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

/** Removes all elements. */
export function clear(list: unknown[]): void {
  while (list.length > 0) list.pop()
}
