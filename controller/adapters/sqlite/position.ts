/** The extent of a file, and how it compares with its mark. Only reads. */
import type Database from 'better-sqlite3'
import { compareWithMark, type Continuity, type StorePosition } from '../sql/continuity.ts'
import { markPath, type FoundMark } from '../sql/mark-file.ts'

/** From this schema version on a store has an id, a transaction counter and a flag for its mark. */
const FIRST_SCHEMA_WITH_HISTORY = 9
/** From this schema version on events form a chain. */
const FIRST_SCHEMA_WITH_CHAIN = 4

/** @param schema version of the file, from 1 */
export function readPosition(db: Database.Database, schema: number): StorePosition {
  const history =
    schema < FIRST_SCHEMA_WITH_HISTORY ? undefined : db.prepare<[], HistoryRow>('select * from history').get()
  const epoch = db.prepare<[], number>('select epoch from marks').pluck().get() ?? 0
  const lastEvent = db
    .prepare<[], { seq: number; at: number }>('select seq, at from events order by seq desc limit 1')
    .get()
  const ends =
    schema < FIRST_SCHEMA_WITH_CHAIN
      ? undefined
      : db
          .prepare<[], ChainEnd>('select head_seq as seq, lower(hex(head_hash)) as chain from event_chain')
          .get()
  return {
    storeId: history?.store_id ?? null,
    epoch,
    eventSeq: ends?.seq ?? lastEvent?.seq ?? 0,
    chain: ends?.chain ?? null,
    commits: history?.commits ?? 0,
    isMarked: history?.is_marked === 1,
    supersedes: history?.supersedes ?? null,
    lastEventAt: lastEvent?.at ?? null,
  }
}

/** @param found the mark; while a controller runs it must be read before the position */
export function compareFile(
  db: Database.Database,
  path: string,
  position: StorePosition,
  found: FoundMark,
): Continuity {
  return compareWithMark({ name: path, markFile: markPath(path) }, position, found, (seq) => {
    const prunedSeq = db.prepare<[], number>('select pruned_seq from event_chain').pluck().get() ?? 0
    if (seq <= prunedSeq) return null
    return db.prepare<[number], string>('select lower(hex(hash)) from events where seq = ?').pluck().get(seq)
  })
}

interface HistoryRow {
  readonly store_id: string
  readonly commits: number
  readonly is_marked: number
  readonly supersedes: string | null
}

interface ChainEnd {
  readonly seq: number
  readonly chain: string
}
