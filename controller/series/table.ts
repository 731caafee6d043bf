/**
 * The series of all scopes of one kind. Each base interval is written once; a coarser interval is the sum of
 * the finer ones in it, and what of it has passed can be read before it is complete.
 */
import type { Instant } from '../../protocol/units.ts'
import { COLUMNS } from './columns.ts'
import { limitsOf, MAX_SCOPES, type TableKind } from './retention.ts'
import { addColumn, packRow, type Row } from './row.ts'
import { Tier } from './tier.ts'

export interface Scope {
  readonly index: number
  /** Rows that end before this are about somebody else who had the index. */
  readonly since: Instant
}

/** What of a coarser interval is complete at the resolution below. */
interface OpenSlot {
  at: Instant | null
  values: Float64Array<ArrayBuffer>
}

const FIRST_CAPACITY = 8

export class SeriesTable {
  readonly kind: TableKind
  readonly tiers: readonly Tier[]
  /** Told of each row that is complete, with the place of its tier. */
  onRow: (tier: number, row: Row) => void = () => {}
  /** Grows with every scope that comes or goes. */
  scopeVersion = 0
  /** The interval that is being written: column by column, `capacity` numbers each. */
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
   * The index of a scope, a new one if need be; null when there are too many. `since`: nothing is known of it
   * before.
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

  /** The scope is gone, and its series with it. */
  forget(key: string): void {
    const scope = this.#scopes.get(key)
    if (scope === undefined) return
    this.#scopes.delete(key)
    this.#free.push(scope.index)
    this.scopeVersion += 1
  }

  /** Begins a new interval: everything is 0. */
  clear(): void {
    this.values.fill(0)
  }

  add(index: number, row: Float64Array): void {
    const { values, capacity } = this
    for (let c = 0, at = index; c < COLUMNS; c++, at += capacity)
      values[at] = (values[at] as number) + (row[c] as number)
  }

  /**
   * What was written is about the base interval that begins at `at`; false when there is a later one already.
   */
  commit(at: Instant): boolean {
    // After a gap: what was under way before it ends here.
    for (let place = 1; place < this.tiers.length; place++) {
      const { slotMs } = this.tiers[place] as Tier
      const open = (this.#open[place] as OpenSlot).at
      if (open !== null && at >= open + slotMs) this.#closeOpen(place)
    }
    return this.#close(0, at, this.values)
  }

  /** A row that was kept from an earlier time, in its order. */
  restore(tier: number, row: Row): void {
    const { [tier]: kept } = this.tiers
    kept?.restore(row)
  }

  /** After `restore`: coarser rows that are missing, and what of them has begun, from the finer ones. */
  rollUp(): void {
    // Coarsest first: a row that is completed on the way is added to the next coarser one as ever.
    for (let place = this.tiers.length - 1; place > 0; place--) {
      const tier = this.tiers[place] as Tier
      const finer = this.tiers[place - 1] as Tier
      const from = tier.last === undefined ? -Infinity : tier.last.at + tier.slotMs
      for (const row of finer.rows(from, Infinity)) this.#addTo(place, row.at, sumsOf(row, this.capacity))
    }
  }

  /** Where the interval begins that this tier has not completed yet; null when nothing of it has passed. */
  openAt(place: number): Instant | null {
    const { slotMs } = this.tiers[place] as Tier
    const latest = Math.max(...this.#open.slice(1, place + 1).map(({ at }) => at ?? -Infinity))
    return latest === -Infinity ? null : Math.floor(latest / slotMs) * slotMs
  }

  /** What of that interval has passed. */
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
    // No power of two: the columns of a scope would share one line of the processor's cache.
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

/** The row as it was before it was packed. */
function sumsOf(row: Row, capacity: number): Float64Array<ArrayBuffer> {
  const sums = new Float64Array(COLUMNS * capacity)
  const all = Int32Array.from({ length: row.count }, (_, index) => index)
  for (let c = 0; c < COLUMNS; c++) addColumn(row, c, all, sums, c * capacity)
  return sums
}
