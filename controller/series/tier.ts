/** The rows of one table at one resolution, bounded in number and in bytes; the oldest are removed first. */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { Row } from './row.ts'

export interface TierLimits {
  readonly slotMs: DurationMs
  readonly maxRows: number
  readonly maxBytes: number
}

export class Tier {
  readonly slotMs: DurationMs
  readonly #maxRows: number
  readonly #maxBytes: number
  readonly #rows: Row[] = []
  #bytes = 0

  constructor({ slotMs, maxRows, maxBytes }: TierLimits) {
    this.slotMs = slotMs
    this.#maxRows = maxRows
    this.#maxBytes = maxBytes
  }

  get first(): Row | undefined {
    return this.#rows[0]
  }

  get last(): Row | undefined {
    return this.#rows.at(-1)
  }

  get length(): number {
    return this.#rows.length
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Rows arrive in the order of time; others are dropped. */
  push(row: Row): boolean {
    if (row.at <= (this.last?.at ?? -Infinity)) return false
    this.#rows.push(row)
    this.#bytes += row.bytes
    this.#trim()
    return true
  }

  /**
   * Inserts an archived row by time and replaces one of the same interval. Others stay, so that a clock that
   * was set back for one start costs no history.
   */
  restore(row: Row): void {
    if (this.push(row)) return
    const place = this.#placeOf(row.at)
    const same = this.#rows[place]?.at === row.at ? this.#rows[place] : undefined
    this.#rows.splice(place, same === undefined ? 0 : 1, row)
    this.#bytes += row.bytes - (same?.bytes ?? 0)
    this.#trim()
  }

  /** Rows that begin in [from, to). */
  rows(from: Instant, to: Instant): readonly Row[] {
    return this.#rows.slice(this.#placeOf(from), this.#placeOf(to))
  }

  /** Index of the first row that does not begin before `at`. */
  #placeOf(at: Instant): number {
    let low = 0
    let high = this.#rows.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#rows[middle] as Row).at < at) low = middle + 1
      else high = middle
    }
    return low
  }

  #trim(): void {
    while (this.#rows.length > this.#maxRows || (this.#bytes > this.#maxBytes && this.#rows.length > 1)) {
      this.#bytes -= (this.#rows.shift() as Row).bytes
    }
  }
}
