/** In-place edits of short lists on hot paths: `splice` makes a new array for what it removes, these make nothing. */

export function removeAt<T>(list: T[], at: number): void {
  const last = list.length - 1
  if (at < 0 || at > last) return
  for (let i = at; i < last; i++) list[i] = list[i + 1] as T
  list.length = last
}

export function insertAt<T>(list: T[], at: number, item: T): void {
  list.push(item)
  for (let i = list.length - 1; i > at; i--) list[i] = list[i - 1] as T
  list[at] = item
}
