/**
 * Numbered items ordered by two keys, each with several values: "the first item whose value in this column is
 * at least x", with one order for all columns. Keys and values are typed arrays indexed by item number; the
 * order is a list of blocks of item numbers, and each block knows a bound of its values per column, so that a
 * search reads one number per block and then one block.
 *
 * A pool's GPUs are kept this way: in order of preference, one column per kind of request, the value being
 * the largest demand they admit.
 */

import { grownColumn, grownFlags } from './columns.ts'
import { removeAt } from './list-edit.ts'

const FIRST_ROOM = 64
const BLOCK_MAX = 128

interface Block {
  readonly items: Int32Array
  /** Their first keys, adjacent in memory: a search reads little else. */
  readonly keys: Float64Array
  size: number
  /** Upper bounds of its values; exact where `isExact` says so. */
  readonly bounds: Float64Array
  readonly isExact: Uint8Array
}

export class OrderedTable {
  readonly #columns: number
  readonly #tieBreak: (a: number, b: number) => number
  #key1 = new Float64Array(FIRST_ROOM)
  #key2 = new Float64Array(FIRST_ROOM)
  #values: Float64Array
  #isIn = new Uint8Array(FIRST_ROOM)
  readonly #blocks: Block[] = []
  /** The first key of each block's last item. */
  readonly #lastKeys: number[] = []
  /** The largest value in each column; NaN while unknown. */
  readonly #largest: Float64Array

  /** @param tieBreak total order among items with equal keys */
  constructor(columns: number, tieBreak: (a: number, b: number) => number) {
    this.#columns = columns
    this.#tieBreak = tieBreak
    this.#values = new Float64Array(FIRST_ROOM * columns)
    this.#largest = new Float64Array(columns).fill(-Infinity)
  }

  /** Inserts the item, or moves it, to these keys; one value per column. */
  set(item: number, key1: number, key2: number, values: Float64Array): void {
    if (item >= this.#isIn.length) this.#grow(item)
    if (this.#isIn[item] === 1) {
      if (this.#key1[item] === key1 && this.#key2[item] === key2) {
        this.#change(item, values)
        return
      }
      this.remove(item)
    }
    this.#key1[item] = key1
    this.#key2[item] = key2
    this.#isIn[item] = 1
    for (let column = 0; column < this.#columns; column++)
      this.#values[item * this.#columns + column] = values[column] as number
    this.#insert(item)
  }

  remove(item: number): void {
    if (this.#isIn[item] !== 1) return
    const blockAt = this.#blockFor(item)
    const block = this.#blocks[blockAt] as Block
    const at = this.#placeIn(block, item)
    const { items, keys } = block
    block.size -= 1
    for (let place = at; place < block.size; place++) {
      items[place] = items[place + 1] as number
      keys[place] = keys[place + 1] as number
    }
    this.#isIn[item] = 0
    for (let column = 0; column < this.#columns; column++)
      this.#valueRemoved(block, column, this.#values[item * this.#columns + column] as number)
    if (block.size > 0) this.#lastKeys[blockAt] = block.keys[block.size - 1] as number
    else {
      removeAt(this.#blocks, blockAt)
      removeAt(this.#lastKeys, blockAt)
    }
  }

  /** The largest value in this column; -Infinity when empty. */
  maxValue(column: number): number {
    const known = this.#largest[column] as number
    if (!Number.isNaN(known)) return known
    let max = -Infinity
    for (const block of this.#blocks) {
      if ((block.bounds[column] as number) <= max) continue
      const largest = this.#measure(block, column)
      if (largest > max) max = largest
    }
    this.#largest[column] = max
    return max
  }

  /** The first item in order whose value in this column is at least `minValue`; -1 if none exists. */
  firstAtLeast(column: number, minValue: number): number {
    return this.#firstIn(0, column, minValue)
  }

  /** As `firstAtLeast`, among items after `previous`, which must be present. */
  nextAtLeast(column: number, previous: number, minValue: number): number {
    const blockAt = this.#blockFor(previous)
    const block = this.#blocks[blockAt] as Block
    for (let at = this.#placeIn(block, previous) + 1; at < block.size; at++) {
      const item = block.items[at] as number
      if ((this.#values[item * this.#columns + column] as number) >= minValue) return item
    }
    return this.#firstIn(blockAt + 1, column, minValue)
  }

  /** The largest value in this column among items with at least these keys; -Infinity if none exists. */
  maxValueFrom(column: number, key1: number, key2: number): number {
    let max = -Infinity
    for (
      let at = this.#blockReaching(key1, key2), isFirst = true;
      at < this.#blocks.length;
      at++, isFirst = false
    ) {
      const block = this.#blocks[at] as Block
      if ((block.bounds[column] as number) <= max) continue
      const largest = isFirst ? this.#largestFrom(block, column, key1, key2) : this.#measure(block, column)
      if (largest > max) max = largest
    }
    return max
  }

  /** All items with at least these keys and this value, in order. */
  itemsFrom(column: number, key1: number, key2: number, minValue: number): readonly number[] {
    const found: number[] = []
    for (let at = this.#blockReaching(key1, key2); at < this.#blocks.length; at++) {
      const { items, size, bounds } = this.#blocks[at] as Block
      if ((bounds[column] as number) < minValue) continue
      for (let place = 0; place < size; place++) {
        const item = items[place] as number
        if (
          (this.#values[item * this.#columns + column] as number) >= minValue &&
          !this.#isBelow(item, key1, key2)
        )
          found.push(item)
      }
    }
    return found
  }

  #firstIn(from: number, column: number, minValue: number): number {
    const columns = this.#columns
    const values = this.#values
    for (let at = from; at < this.#blocks.length; at++) {
      const block = this.#blocks[at] as Block
      if ((block.bounds[column] as number) < minValue) continue
      const { items, size } = block
      for (let place = 0; place < size; place++) {
        const item = items[place] as number
        if ((values[item * columns + column] as number) >= minValue) return item
      }
      this.#measure(block, column)
    }
    return -1
  }

  #insert(item: number): void {
    if (this.#blocks.length === 0) {
      this.#blocks.push(newBlock(this.#columns))
      this.#lastKeys.push(-Infinity)
    }
    const blockAt = this.#blockFor(item)
    const block = this.#blocks[blockAt] as Block
    const at = this.#lowerBound(block, item)
    const { items, keys } = block
    for (let place = block.size; place > at; place--) {
      items[place] = items[place - 1] as number
      keys[place] = keys[place - 1] as number
    }
    items[at] = item
    keys[at] = this.#key1[item] as number
    block.size += 1
    this.#lastKeys[blockAt] = block.keys[block.size - 1] as number
    for (let column = 0; column < this.#columns; column++)
      this.#valueAdded(block, column, this.#values[item * this.#columns + column] as number)
    if (block.size > BLOCK_MAX) this.#split(blockAt)
  }

  #change(item: number, values: Float64Array): void {
    const from = item * this.#columns
    let block: Block | null = null
    for (let column = 0; column < this.#columns; column++) {
      const before = this.#values[from + column] as number
      const value = values[column] as number
      if (before === value) continue
      block ??= this.#blocks[this.#blockFor(item)] as Block
      this.#values[from + column] = value
      if (value > before) this.#valueAdded(block, column, value)
      else this.#valueRemoved(block, column, before)
    }
  }

  /** A value was added. */
  #valueAdded(block: Block, column: number, value: number): void {
    if (value >= (block.bounds[column] as number)) {
      block.bounds[column] = value
      block.isExact[column] = 1
    }
    if (value > (this.#largest[column] as number)) this.#largest[column] = value
  }

  /** A value was removed. */
  #valueRemoved(block: Block, column: number, value: number): void {
    if (value === block.bounds[column]) block.isExact[column] = 0
    if (value === this.#largest[column]) this.#largest[column] = NaN
  }

  #largestFrom({ items, size }: Block, column: number, key1: number, key2: number): number {
    let max = -Infinity
    for (let at = 0; at < size; at++) {
      const item = items[at] as number
      const value = this.#values[item * this.#columns + column] as number
      if (value > max && !this.#isBelow(item, key1, key2)) max = value
    }
    return max
  }

  #isBelow(item: number, key1: number, key2: number): boolean {
    const first = this.#key1[item] as number
    return first < key1 || (first === key1 && (this.#key2[item] as number) < key2)
  }

  /**
   * Index of the first block that contains an item with at least these keys; otherwise the number of blocks.
   */
  #blockReaching(key1: number, key2: number): number {
    let low = 0
    let high = this.#blocks.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const { items, size } = this.#blocks[middle] as Block
      if (this.#isBelow(items[size - 1] as number, key1, key2)) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Returns the largest value of a block, and stores it as exact. */
  #measure(block: Block, column: number): number {
    if (block.isExact[column] === 1) return block.bounds[column] as number
    const { items, size } = block
    let max = -Infinity
    for (let at = 0; at < size; at++) {
      const value = this.#values[(items[at] as number) * this.#columns + column] as number
      if (value > max) max = value
    }
    block.bounds[column] = max
    block.isExact[column] = 1
    return max
  }

  /** The first block whose last item does not come before this one; otherwise the last block. */
  #blockFor(item: number): number {
    const key1 = this.#key1[item] as number
    let low = 0
    let high = this.#blocks.length - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      const lastKey = this.#lastKeys[middle] as number
      if (
        lastKey < key1 ||
        (lastKey === key1 && this.#comesBefore(lastOf(this.#blocks[middle] as Block), item))
      )
        low = middle + 1
      else high = middle
    }
    return low
  }

  #placeIn(block: Block, item: number): number {
    const at = this.#lowerBound(block, item)
    if (block.items[at] !== item) throw new Error('broken invariant: an item is not where its keys say')
    return at
  }

  #lowerBound({ items, keys, size }: Block, item: number): number {
    const key1 = this.#key1[item] as number
    let low = 0
    let high = size
    while (low < high) {
      const middle = (low + high) >>> 1
      const key = keys[middle] as number
      if (key < key1 || (key === key1 && this.#comesBefore(items[middle] as number, item))) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Compares items with equal first keys. */
  #comesBefore(a: number, b: number): boolean {
    const second = (this.#key2[a] as number) - (this.#key2[b] as number)
    return second === 0 ? a !== b && this.#tieBreak(a, b) < 0 : second < 0
  }

  #split(blockAt: number): void {
    const block = this.#blocks[blockAt] as Block
    const right = newBlock(this.#columns)
    const kept = block.size >>> 1
    right.items.set(block.items.subarray(kept, block.size))
    right.keys.set(block.keys.subarray(kept, block.size))
    right.size = block.size - kept
    block.size = kept
    // Bounds of the whole block hold for its halves; exact ones are computed when needed.
    right.bounds.set(block.bounds)
    right.isExact.fill(0)
    block.isExact.fill(0)
    this.#blocks.splice(blockAt + 1, 0, right)
    this.#lastKeys.splice(blockAt, 1, block.keys[kept - 1] as number, right.keys[right.size - 1] as number)
  }

  #grow(item: number): void {
    const room = Math.max(2 * this.#isIn.length, item + 1)
    this.#key1 = grownColumn(this.#key1, room, 0)
    this.#key2 = grownColumn(this.#key2, room, 0)
    this.#values = grownColumn(this.#values, room * this.#columns, 0)
    this.#isIn = grownFlags(this.#isIn, room)
  }
}

function lastOf({ items, size }: Block): number {
  return items[size - 1] as number
}

function newBlock(columns: number): Block {
  return {
    items: new Int32Array(BLOCK_MAX + 1),
    keys: new Float64Array(BLOCK_MAX + 1),
    size: 0,
    bounds: new Float64Array(columns).fill(-Infinity),
    isExact: new Uint8Array(columns).fill(1),
  }
}
