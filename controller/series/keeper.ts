/** Stores every complete row in the archive, one log per table and resolution, and restores them. */
import type { Instant } from '../../protocol/units.ts'
import type { SeriesArchive } from '../ports/series-archive.ts'
import { COLUMNS } from './columns.ts'
import { SLOT_MS, TABLE_KINDS } from './retention.ts'
import { addColumn, packRow, type Row } from './row.ts'
import type { Tables } from './node-sampler.ts'
import { decodeRecord, encodeRow, encodeScopes, type ScopeIndexes } from './series-record.ts'
import type { SeriesTable } from './table.ts'

/** A segment ends after this number of rows or bytes, so that the oldest can be removed. */
const SEGMENT_ROWS = 256
const SEGMENT_BYTES = 4 * 1024 * 1024

/** Written to a log since its segment began. */
interface Segment {
  rows: number
  bytes: number
  scopeVersion: number
}

export class SeriesKeeper {
  readonly #archive: SeriesArchive
  readonly #segments = new Map<string, Segment>()

  constructor(archive: SeriesArchive) {
    this.#archive = archive
  }

  /**
   * Fills the tables with archived rows before `now`, and completes unfinished intervals. From now on each
   * complete row is archived.
   */
  async restore(tables: Tables, now: Instant): Promise<void> {
    for (const kind of TABLE_KINDS) {
      const table = tables[kind]
      table.onRow = (tier, row) => this.#keep(table, tier, row)
      for (let tier = SLOT_MS.length - 1; tier >= 0; tier--) await this.#restoreLog(table, tier, now)
      table.rollUp()
    }
  }

  async #restoreLog(table: SeriesTable, tier: number, now: Instant): Promise<void> {
    let translation: Int32Array | null = new Int32Array(0)
    for await (const records of this.#archive.read(logOf(table, tier))) {
      for (const bytes of records) {
        const before = table.tiers[tier]?.last
        const record = decodeRecord(bytes, before)
        if (record?.kind === 'scopes') translation = translationTo(table, record.scopes)
        // A clock that was ahead wrote rows of the future.
        else if (record !== null && record.row.at + (SLOT_MS[tier] as number) <= now) {
          table.restore(tier, translation === null ? record.row : translated(record.row, translation, before))
        }
      }
    }
  }

  #keep(table: SeriesTable, tier: number, row: Row): void {
    const log = logOf(table, tier)
    const last = this.#segments.get(log)
    const isFull = last === undefined || last.rows >= SEGMENT_ROWS || last.bytes >= SEGMENT_BYTES
    const segment = isFull ? { rows: 0, bytes: 0, scopeVersion: -1 } : last
    this.#segments.set(log, segment)
    const records: Uint8Array[] = []
    if (segment.scopeVersion !== table.scopeVersion) {
      records.push(encodeScopes([...table.scopes].map(([key, { index }]) => [key, index] as const)))
      segment.scopeVersion = table.scopeVersion
    }
    records.push(encodeRow(row))
    segment.rows += 1
    segment.bytes += records.reduce((sum, { length }) => sum + length, 0)
    if (!this.#archive.append(log, records, isFull ? row.at : null)) this.#segments.delete(log)
    if (isFull) this.#archive.trim(log, table.tiers[tier]?.first?.at ?? row.at)
  }
}

function logOf(table: SeriesTable, tier: number): string {
  return `${table.kind}-${(SLOT_MS[tier] as number) / 1000}s`
}

/** Maps an index in the record to one in the table; null if all are the same. */
function translationTo(table: SeriesTable, scopes: ScopeIndexes): Int32Array | null {
  const length = scopes.reduce((most, [, index]) => Math.max(most, index + 1), 0)
  const translation = new Int32Array(length).fill(-1)
  let isSame = true
  for (const [key, index] of scopes) {
    const own = table.admit(key, -Infinity)
    if (own !== index) isSame = false
    if (own !== null) translation[index] = own
  }
  return isSame ? null : translation
}

function translated(row: Row, translation: Int32Array, before: Row | undefined): Row {
  const count = translation.reduce((most, own) => Math.max(most, own + 1), 0)
  const all = Int32Array.from({ length: row.count }, (_, index) => index)
  const from = new Float64Array(row.count)
  const values = new Float64Array(COLUMNS * count)
  for (let column = 0; column < COLUMNS; column++) {
    from.fill(0)
    addColumn(row, column, all, from, 0)
    translation.forEach((own, index) => {
      if (own >= 0 && index < row.count) values[column * count + own] = from[index] as number
    })
  }
  return packRow(row.at, values, count, count, before)
}
