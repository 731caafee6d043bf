/**
 * The series of all scopes of one kind. Each base interval is written once; a coarser interval is the sum of
 * the finer ones in it, and its finished part can be read before it is complete.
 */
import type { Instant } from '../../protocol/units.ts'
import { COLUMNS } from './columns.ts'
import { limitsOf, MAX_SCOPES, type TableKind } from './retention.ts'
import { addColumn, packRow, type Row } from './row.ts'
import { Tier } from './tier.ts'

export interface Scope {
  readonly index: number
  /** Rows that end before this belong to an earlier scope with the same index. */
  readonly since: Instant
}

/** The complete part of a coarser interval at the resolution below. */
interface OpenSlot {
  at: Instant | null
  values: Float64Array<ArrayBuffer>
}

const FIRST_CAPACITY = 8

export class SeriesTable {
  readonly kind: TableKind
  readonly tiers: readonly Tier[]
  /** Called with each complete row and the index of its tier. */
  onRow: (tier: number, row: Row) => void = () => {}
  /** Grows with every added or removed scope. */
  scopeVersion = 0
  /** The interval being written: column by column, `capacity` numbers each. */
  values = new Float64Array(COLUMNS * FIRST_CAPACITY)
  capacity = FIRST_CAPACITY
  readonly #scopes = new Map<string, Scope>()
  readonly #free: number[] = []
  readonly #open: readonly OpenSlot[]
  #count = 0

  constructor(kind: TableKind) {
    this.kind = kind
    this.tiers = limitsOf(kind).map((limits) => new Tier(limits))
    this.#open = this.tiers.map(() => ({ at: null, values: new Float64Array(COLUMNS * FIRST_CAPACITY) }))
  }

  get scopes(): ReadonlyMap<string, Scope> {
    return this.#scopes
  }

  /**
   * Returns the index of a scope, adding it if needed; null if there are too many. `since`: time from which
   * values are known.
   */
  admit(key: string, since: Instant): number | null {
    const known = this.#scopes.get(key)
    if (known !== undefined) return known.index
    if (this.#scopes.size >= MAX_SCOPES[this.kind]) return null
    const index = this.#free.pop() ?? this.#count++
    while (this.#count > this.capacity) this.#grow()
    for (const { values } of this.#open)
      for (let c = 0; c < COLUMNS; c++) values[c * this.capacity + index] = 0
    this.#scopes.set(key, { index, since })
    this.scopeVersion += 1
    return index
  }

  /** Removes the scope and its series. */
  forget(key: string): void {
    const scope = this.#scopes.get(key)
    if (scope === undefined) return
    this.#scopes.delete(key)
    this.#free.push(scope.index)
    this.scopeVersion += 1
  }

  /** Begins a new interval: all values are 0. */
  clear(): void {
    this.values.fill(0)
  }

  add(index: number, row: Float64Array): void {
    const { values, capacity } = this
    for (let c = 0, at = index; c < COLUMNS; c++, at += capacity)
      values[at] = (values[at] as number) + (row[c] as number)
  }

  /**
   * Assigns the written values to the base interval that begins at `at`; false if a later one exists already.
   */
  commit(at: Instant): boolean {
    // After a gap: ends the unfinished intervals before it.
    for (let place = 1; place < this.tiers.length; place++) {
      const { slotMs } = this.tiers[place] as Tier
      const open = (this.#open[place] as OpenSlot).at
      if (open !== null && at >= open + slotMs) this.#closeOpen(place)
    }
    return this.#close(0, at, this.values)
  }

  /** Adds an archived row, in order. */
  restore(tier: number, row: Row): void {
    const { [tier]: kept } = this.tiers
    kept?.restore(row)
  }

  /** Call after `restore`: builds missing coarser rows, and unfinished ones, from the finer ones. */
  rollUp(): void {
    // Coarsest first: a row completed on the way is added to the next coarser one as usual.
    for (let place = this.tiers.length - 1; place > 0; place--) {
      const tier = this.tiers[place] as Tier
      const finer = this.tiers[place - 1] as Tier
      const from = tier.last === undefined ? -Infinity : tier.last.at + tier.slotMs
      for (const row of finer.rows(from, Infinity)) this.#addTo(place, row.at, sumsOf(row, this.capacity))
    }
  }

  /** Begin of the interval that this tier has not completed yet; null if none of it has passed. */
  openAt(place: number): Instant | null {
    const { slotMs } = this.tiers[place] as Tier
    const latest = Math.max(...this.#open.slice(1, place + 1).map(({ at }) => at ?? -Infinity))
    return latest === -Infinity ? null : Math.floor(latest / slotMs) * slotMs
  }

  /** The finished part of that interval. */
  openRow(place: number): Row | null {
    const openAt = this.openAt(place)
    if (openAt === null) return null
    const sums = new Float64Array(COLUMNS * this.capacity)
    for (const { at, values } of this.#open.slice(1, place + 1)) {
      if (at === null || at < openAt) continue
      for (let i = 0; i < sums.length; i++) sums[i] = (sums[i] as number) + (values[i] as number)
    }
    return packRow(openAt, sums, this.capacity, this.#count, undefined)
  }

  #close(place: number, at: Instant, values: Float64Array): boolean {
    const tier = this.tiers[place] as Tier
    const row = packRow(at, values, this.capacity, this.#count, tier.last)
    if (!tier.push(row)) return false
    this.onRow(place, row)
    if (place + 1 < this.tiers.length) this.#addTo(place + 1, at, values)
    return true
  }

  #addTo(place: number, at: Instant, values: Float64Array): void {
    const { slotMs } = this.tiers[place] as Tier
    const finerMs = (this.tiers[place - 1] as Tier).slotMs
    const open = this.#open[place] as OpenSlot
    const slotAt = Math.floor(at / slotMs) * slotMs
    if (open.at !== null && open.at !== slotAt) this.#closeOpen(place)
    open.at = slotAt
    for (let i = 0; i < values.length; i++)
      open.values[i] = (open.values[i] as number) + (values[i] as number)
    if (at + finerMs >= slotAt + slotMs) this.#closeOpen(place)
  }

  #closeOpen(place: number): void {
    const open = this.#open[place] as OpenSlot
    if (open.at === null) return
    const at = open.at
    open.at = null
    this.#close(place, at, open.values)
    open.values.fill(0)
  }

  #grow(): void {
    // Not a power of two: the columns of a scope would share one cache line.
    const capacity = 2 * this.capacity + 8
    this.values = widened(this.values, this.capacity, capacity)
    for (const open of this.#open) open.values = widened(open.values, this.capacity, capacity)
    this.capacity = capacity
  }
}

function widened(values: Float64Array, from: number, to: number): Float64Array<ArrayBuffer> {
  const wide = new Float64Array(COLUMNS * to)
  for (let c = 0; c < COLUMNS; c++) wide.set(values.subarray(c * from, (c + 1) * from), c * to)
  return wide
}

/** The row before packing. */
function sumsOf(row: Row, capacity: number): Float64Array<ArrayBuffer> {
  const sums = new Float64Array(COLUMNS * capacity)
  const all = Int32Array.from({ length: row.count }, (_, index) => index)
  for (let c = 0; c < COLUMNS; c++) addColumn(row, c, all, sums, c * capacity)
  return sums
}
