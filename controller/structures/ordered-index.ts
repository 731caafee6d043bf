/**
 * An ordered list that answers "the first item whose value is at least x" without visiting those before it.
 *
 * Items are in chunks of at most CHUNK_MAX; each chunk knows its largest value. A search reads one number per
 * chunk and then one chunk: about n/64 + 64 steps. Insert and remove are a binary search and a short move
 * within one chunk. Pending tasks are kept this way by queue order (value: minus the demand), nodes by
 * shortfall.
 */

import { insertAt, removeAt } from './list-edit.ts'

/** The position of one item in an index. Owned by the index while it is in it. */
export interface IndexEntry<T> {
  readonly item: T
  /** First and second key, ascending; `tieBreak` decides between equals. */
  key1: number
  key2: number
  value: number
  chunk: Chunk<T> | null
}

interface Chunk<T> {
  entries: IndexEntry<T>[]
  max: number
}

const CHUNK_MAX = 128

export function newIndexEntry<T>(item: T): IndexEntry<T> {
  return { item, key1: 0, key2: 0, value: 0, chunk: null }
}

export class OrderedIndex<T> {
  readonly #chunks: Chunk<T>[] = []
  readonly #tieBreak: (a: T, b: T) => number
  #size = 0
  #max = -Infinity
  #isMaxKnown = true
  /**
   * For `countBelow`: the number of entries with the last requested value before each chunk; valid for the
   * first `#countedChunks` chunks.
   */
  readonly #counts: number[] = [0]
  #countedValue = NaN
  #countedChunks = 0

  /** @param tieBreak total order among items with equal keys */
  constructor(tieBreak: (a: T, b: T) => number) {
    this.#tieBreak = tieBreak
  }

  get size(): number {
    return this.#size
  }

  /** The largest value; -Infinity when empty. */
  maxValue(): number {
    if (!this.#isMaxKnown) {
      let max = -Infinity
      for (const chunk of this.#chunks) if (chunk.max > max) max = chunk.max
      this.#max = max
      this.#isMaxKnown = true
    }
    return this.#max
  }

  /** Inserts the entry, or moves it, to these keys and this value. */
  set(entry: IndexEntry<T>, key1: number, key2: number, value: number): void {
    const chunk = entry.chunk
    if (chunk !== null) {
      if (entry.key1 === key1 && entry.key2 === key2) {
        if (entry.value !== value) this.#changeValue(chunk, entry, value)
        return
      }
      this.remove(entry)
    }
    entry.key1 = key1
    entry.key2 = key2
    entry.value = value
    this.#insert(entry)
  }

  remove(entry: IndexEntry<T>): void {
    const chunk = entry.chunk
    if (chunk === null) return
    removeAt(chunk.entries, this.#positionIn(chunk, entry))
    this.#recount(chunk)
    entry.chunk = null
    this.#size -= 1
    if (chunk.entries.length === 0) this.#chunks.splice(this.#chunks.indexOf(chunk), 1)
    if (entry.value === chunk.max) this.#refreshMax(chunk)
  }

  /** The first entry in order whose value is at least `minValue`; null if none exists. */
  firstAtLeast(minValue: number): IndexEntry<T> | null {
    if (this.maxValue() < minValue) return null
    for (const chunk of this.#chunks) {
      if (chunk.max < minValue) continue
      for (const entry of chunk.entries) if (entry.value >= minValue) return entry
    }
    return null
  }

  /** As `firstAtLeast`, among entries whose first key is at least `key1`. */
  firstFrom(key1: number, minValue: number): IndexEntry<T> | null {
    for (let at = this.#firstChunkReaching(key1, -Infinity); at < this.#chunks.length; at++) {
      const chunk = this.#chunks[at] as Chunk<T>
      if (chunk.max < minValue) continue
      for (const entry of chunk.entries) if (entry.key1 >= key1 && entry.value >= minValue) return entry
    }
    return null
  }

  /** The largest value among entries with at least these keys; -Infinity if none exists. */
  maxValueFrom(key1: number, key2: number): number {
    let max = -Infinity
    let isFirst = true
    for (const chunk of this.#chunks) {
      const last = chunk.entries[chunk.entries.length - 1] as IndexEntry<T>
      if (chunk.max <= max || isBelow(last, key1, key2)) continue
      if (isFirst) {
        for (const entry of chunk.entries)
          if (entry.value > max && !isBelow(entry, key1, key2)) max = entry.value
        isFirst = false
      } else max = chunk.max
    }
    return max
  }

  /** All entries with at least these keys, in order. */
  *entriesFrom(key1: number, key2: number): Generator<IndexEntry<T>> {
    for (const chunk of this.#chunks) {
      if (isBelow(chunk.entries[chunk.entries.length - 1] as IndexEntry<T>, key1, key2)) continue
      for (const entry of chunk.entries) if (!isBelow(entry, key1, key2)) yield entry
    }
  }

  /**
   * Number of entries with smaller keys and at least this value: a binary search, after a step for each
   * changed chunk.
   */
  countBelow(key1: number, key2: number, minValue: number): number {
    if (minValue !== this.#countedValue) {
      this.#countedValue = minValue
      this.#countedChunks = 0
    }
    const position = this.#firstChunkReaching(key1, key2)
    for (let at = this.#countedChunks; at < position; at++) {
      this.#counts[at + 1] = (this.#counts[at] as number) + countIn(this.#chunks[at] as Chunk<T>, minValue)
    }
    this.#countedChunks = Math.max(this.#countedChunks, position)
    let count = this.#counts[position] as number
    const chunk = this.#chunks[position]
    if (chunk === undefined || chunk.max < minValue) return count
    for (const entry of chunk.entries) if (entry.value >= minValue && isBelow(entry, key1, key2)) count += 1
    return count
  }

  /** As `firstAtLeast`, among entries after `previous` in order. */
  nextAtLeast(previous: IndexEntry<T>, minValue: number): IndexEntry<T> | null {
    const chunk = previous.chunk
    if (chunk === null) return null
    const rest = chunk.entries
    for (let i = this.#positionIn(chunk, previous) + 1; i < rest.length; i++) {
      const entry = rest[i] as IndexEntry<T>
      if (entry.value >= minValue) return entry
    }
    for (let c = this.#chunkPosition(chunk) + 1; c < this.#chunks.length; c++) {
      const later = this.#chunks[c] as Chunk<T>
      if (later.max < minValue) continue
      for (const entry of later.entries) if (entry.value >= minValue) return entry
    }
    return null
  }

  /** All entries in order. */
  *entries(): Generator<IndexEntry<T>> {
    for (const chunk of this.#chunks) yield* chunk.entries
  }

  #insert(entry: IndexEntry<T>): void {
    this.#size += 1
    if (entry.value > this.#max) this.#max = entry.value
    if (this.#chunks.length === 0) {
      entry.chunk = { entries: [entry], max: entry.value }
      this.#chunks.push(entry.chunk)
      return
    }
    const chunk = this.#chunks[this.#chunkFor(entry)] as Chunk<T>
    insertAt(chunk.entries, this.#lowerBound(chunk, entry), entry)
    entry.chunk = chunk
    if (entry.value > chunk.max) chunk.max = entry.value
    this.#recount(chunk)
    if (chunk.entries.length > CHUNK_MAX) this.#split(chunk)
  }

  /** The first chunk whose last entry does not come before this one; otherwise the last chunk. */
  #chunkFor(entry: IndexEntry<T>): number {
    let low = 0
    let high = this.#chunks.length - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      const entries = (this.#chunks[middle] as Chunk<T>).entries
      if (this.#compare(entries[entries.length - 1] as IndexEntry<T>, entry) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  /**
   * Index of the first chunk that contains an entry with at least these keys; otherwise the number of chunks.
   */
  #firstChunkReaching(key1: number, key2: number): number {
    let low = 0
    let high = this.#chunks.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const { entries } = this.#chunks[middle] as Chunk<T>
      if (isBelow(entries[entries.length - 1] as IndexEntry<T>, key1, key2)) low = middle + 1
      else high = middle
    }
    return low
  }

  /** The chunk has changed. Only the position of the last chunk is known; for others all is counted again. */
  #recount(chunk: Chunk<T>): void {
    if (this.#countedChunks === 0) return
    const last = this.#chunks.length - 1
    this.#countedChunks = chunk === this.#chunks[last] ? Math.min(this.#countedChunks, last) : 0
  }

  #lowerBound(chunk: Chunk<T>, entry: IndexEntry<T>): number {
    const entries = chunk.entries
    let low = 0
    let high = entries.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#compare(entries[middle] as IndexEntry<T>, entry) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  #positionIn(chunk: Chunk<T>, entry: IndexEntry<T>): number {
    const position = this.#lowerBound(chunk, entry)
    if (chunk.entries[position] !== entry)
      throw new Error('broken invariant: an index entry is not where its keys say')
    return position
  }

  #chunkPosition(chunk: Chunk<T>): number {
    return this.#chunkFor(chunk.entries[chunk.entries.length - 1] as IndexEntry<T>)
  }

  #compare(a: IndexEntry<T>, b: IndexEntry<T>): number {
    return a.key1 - b.key1 || a.key2 - b.key2 || (a === b ? 0 : this.#tieBreak(a.item, b.item))
  }

  #split(chunk: Chunk<T>): void {
    const position = this.#chunkPosition(chunk)
    const moved = chunk.entries.splice(chunk.entries.length >>> 1)
    const right: Chunk<T> = { entries: moved, max: largestOf(moved) }
    for (const entry of moved) entry.chunk = right
    chunk.max = largestOf(chunk.entries)
    this.#countedChunks = Math.min(this.#countedChunks, position)
    this.#chunks.splice(position + 1, 0, right)
  }

  #changeValue(chunk: Chunk<T>, entry: IndexEntry<T>, value: number): void {
    const wasMax = entry.value === chunk.max
    entry.value = value
    this.#recount(chunk)
    if (value >= chunk.max) {
      chunk.max = value
      if (value > this.#max) this.#max = value
    } else if (wasMax) this.#refreshMax(chunk)
  }

  /** Call after the entry with the chunk's maximum was removed or decreased. */
  #refreshMax(chunk: Chunk<T>): void {
    const before = chunk.max
    chunk.max = largestOf(chunk.entries)
    if (before === this.#max && chunk.max < before) this.#isMaxKnown = false
  }
}

function isBelow<T>(entry: IndexEntry<T>, key1: number, key2: number): boolean {
  return entry.key1 < key1 || (entry.key1 === key1 && entry.key2 < key2)
}

function largestOf<T>(entries: readonly IndexEntry<T>[]): number {
  let max = -Infinity
  for (const entry of entries) if (entry.value > max) max = entry.value
  return max
}

function countIn<T>({ entries, max }: Chunk<T>, minValue: number): number {
  if (max < minValue) return 0
  let count = 0
  for (const entry of entries) if (entry.value >= minValue) count += 1
  return count
}
