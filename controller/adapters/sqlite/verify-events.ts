/** Verifies the log of events: each event in its place, unchanged, none missing (docs/events.md). */
import Database from 'better-sqlite3'
import { existsSync } from 'node:fs'
import { StoreFault } from '../../ports/store.ts'
import { canonicalEvent, nextHash } from '../sql/event-chain.ts'
import { readChainEnds } from './event-log.ts'
import type { ChainEnds } from '../sql/pruning.ts'
import { faultOf } from './faults.ts'
import type { EventRow } from '../sql/rows.ts'

/** An earlier note of the chain: this event had this hash, in hex. */
export interface NotedLink {
  readonly seq: number
  readonly hash: string
}

export type Verification = Intact | Broken

interface Intact {
  readonly isIntact: true
  readonly events: number
  readonly firstSeq: number | null
  readonly lastSeq: number
  /**
   * In hex; note it elsewhere, with `lastSeq`: an attacker who can write the file can write a consistent
   * chain.
   */
  readonly lastHash: string
  /** The newest event removed by retention; 0 for none. */
  readonly prunedSeq: number
}

interface Broken {
  readonly isIntact: false
  /** The first event that is changed or missing. */
  readonly brokenSeq: number
  readonly why: string
}

/**
 * Only reads. A controller may be writing meanwhile: the check covers one instant.
 * @throws StoreFault if the file does not exist, cannot be read, or is older than the chain
 */
export function verifyEvents(path: string, noted: readonly NotedLink[] = []): Verification {
  if (!existsSync(path)) throw new StoreFault(`${path} does not exist: use a data directory or a store file`)
  try {
    const db = new Database(path, { readonly: true, fileMustExist: true })
    try {
      return db.transaction(() => verify(db, path, noted))()
    } finally {
      db.close()
    }
  } catch (error) {
    throw faultOf(error, path)
  }
}

function verify(db: Database.Database, path: string, noted: readonly NotedLink[]): Verification {
  if (!hasTable(db, 'event_chain')) {
    throw new StoreFault(
      `${path} has no chain of events: it was written by an earlier version (a controller creates one ` +
        'when it starts)',
    )
  }
  const ends = readChainEnds(db)
  const nextSeq = db.prepare<[], number | null>('select next_event_seq from marks').pluck().get() ?? 1
  return verifyRows(rowsOf(db), ends, nextSeq, new Map(noted.map((link) => [link.seq, link.hash])))
}

type ChainedRow = [...EventRow, hash: string]

function rowsOf(db: Database.Database): Iterable<ChainedRow> {
  return db
    .prepare<[], ChainedRow>(
      'select seq, at, kind, task_id, node_id, caused_by, author, data, lower(hex(hash)) ' +
        'from events order by seq',
    )
    .raw()
    .iterate()
}

function verifyRows(
  rows: Iterable<ChainedRow>,
  ends: ChainEnds,
  nextSeq: number,
  noted: ReadonlyMap<number, string>,
): Verification {
  let [seq, hash, events] = [ends.prunedSeq, ends.prunedHash, 0]
  const gone = [...noted.keys()].find((each) => each < seq)
  if (gone !== undefined)
    return broken(gone, 'retention has removed the noted event, so it cannot be compared: note a later one')
  if (isContradicted(noted, seq, hash))
    return broken(seq, 'the hash of the last pruned event differs from the noted one')
  for (const [rowSeq, at, kind, taskId, nodeId, causedBy, by, data, stored] of rows) {
    if (rowSeq <= seq) return broken(rowSeq, `it precedes event ${seq + 1}, which should be the first`)
    if (rowSeq !== seq + 1) return broken(seq + 1, `it is missing: event ${rowSeq} is the next`)
    seq = rowSeq
    hash = nextHash(hash, canonicalEvent([rowSeq, at, kind, taskId, nodeId, causedBy, by, data]))
    events += 1
    if (hash !== stored) return broken(seq, 'it was changed, or does not follow the previous event')
    if (isContradicted(noted, seq, hash)) return broken(seq, 'its hash differs from the noted one')
  }
  const newestKnown = Math.max(ends.headSeq, nextSeq - 1)
  if (seq < newestKnown) return broken(seq + 1, `it is missing, as are all events up to ${newestKnown}`)
  if (seq > newestKnown || hash !== ends.headHash)
    return broken(seq, `the chain should end with event ${ends.headSeq}, ${ends.headHash}`)
  const unseen = [...noted.keys()].find((each) => each > seq)
  if (unseen !== undefined) return broken(unseen, 'it was noted, but the log ends before it')
  const firstSeq = events === 0 ? null : seq - events + 1
  return { isIntact: true, events, firstSeq, lastSeq: seq, lastHash: hash, prunedSeq: ends.prunedSeq }
}

function isContradicted(noted: ReadonlyMap<number, string>, seq: number, hash: string): boolean {
  const known = noted.get(seq)
  return known !== undefined && known !== hash
}

function broken(brokenSeq: number, why: string): Broken {
  return { isIntact: false, brokenSeq, why }
}

function hasTable(db: Database.Database, name: string): boolean {
  return db.prepare(`select 1 from sqlite_schema where type = 'table' and name = ?`).get(name) !== undefined
}
