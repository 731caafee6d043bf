/** What changed, in order. Each reader takes in what it has not seen when it is asked, so that one who is asked rarely costs nothing meanwhile. */

/** How far somebody has read. */
export interface LogReader {
  seen: number
}

/** From so many changes on it pays to sort out repeats first. */
const MANY_CHANGES = 64
/** Past this the log is shortened; far more than change between two looks of somebody who looks. */
const MAX_LOG = 65_536

export class ChangeLog<T> {
  #items: T[] = []
  #readers: LogReader[] = []

  /** A reader that knows everything up to now. */
  addReader(): LogReader {
    const reader = { seen: this.#items.length }
    this.#readers.push(reader)
    return reader
  }

  /** Of a log that is new: its items, and readers that have not seen so many of the last of them. */
  recall(items: readonly T[], unseenCounts: readonly number[]): readonly LogReader[] {
    this.#items = [...items]
    this.#readers = unseenCounts.map((count) => ({ seen: items.length - count }))
    return this.#readers
  }

  push(item: T): void {
    if (this.#readers.length === 0) return
    this.#items.push(item)
    if (this.#items.length > MAX_LOG) this.#shorten()
  }

  isNews(reader: LogReader): boolean {
    return reader.seen < this.#items.length
  }

  /** What this reader has not seen; it stays so. */
  unseen(reader: LogReader): readonly T[] {
    return this.#items.slice(reader.seen)
  }

  /** What this reader has not seen; one that looks rarely finds each item once. It counts as seen from now on. */
  news(reader: LogReader): readonly T[] {
    const items = this.#items
    const from = reader.seen
    reader.seen = items.length
    const rest = from === 0 ? items : items.slice(from)
    return rest.length > MANY_CHANGES ? [...new Set(rest)] : rest
  }

  clear(): void {
    this.#items = []
    this.#readers = []
  }

  /** Readers that nobody asks may lag: they take in each item once, and the log begins anew. */
  #shorten(): void {
    const length = this.#items.length
    let behind = length
    for (const { seen } of this.#readers) if (seen < behind) behind = seen
    this.#items = [...new Set(this.#items.slice(behind))]
    for (const reader of this.#readers) reader.seen = reader.seen === length ? this.#items.length : 0
  }
}
