/**
 * Appends events to their chain and removes the oldest, within the writer's transaction, so that file and
 * chain always agree.
 */
import type Database from 'better-sqlite3'
import { canonicalEvent, eventBytes, nextHash } from './event-chain.ts'
import type { AgeAllowance } from './retention-clock.ts'
import type { EventRow } from './rows.ts'

/** Limits; the first one reached applies. */
export interface EventRetention {
  readonly maxEvents: number
  /** Approximate bytes of the file. */
  readonly maxBytes: number | null
  readonly maxAgeMs: number | null
}

/**
 * Besides as many as it adds, a commit removes at most this number of old events: a lowered limit is reached
 * gradually.
 */
const EXTRA_PRUNED_EVENTS = 1000

/** Both ends of the chain; hashes in hex. */
export interface ChainEnds {
  readonly headSeq: number
  readonly headHash: string
  readonly prunedSeq: number
  readonly prunedHash: string
  readonly keptBytes: number
}

export interface EventLog {
  /**
   * Call within a transaction. The returned ends are for the next call, once the transaction is committed.
   */
  write(ends: ChainEnds, rows: readonly EventRow[], byAge: AgeAllowance): WrittenEvents
}

export interface WrittenEvents {
  readonly ends: ChainEnds
  readonly removedByAge: number
}

/** Reads the ends from the file. */
export function readChainEnds(db: Database.Database): ChainEnds {
  const query = db.prepare<
    unknown[],
    ChainEnds
  >(`select head_seq as headSeq, lower(hex(head_hash)) as headHash,
    pruned_seq as prunedSeq, lower(hex(pruned_hash)) as prunedHash, kept_bytes as keptBytes from event_chain`)
  const ends = query.get()
  if (ends === undefined) throw new Error('broken invariant: the store has no chain of events')
  return ends
}

export function createEventLog(db: Database.Database, retention: EventRetention): EventLog {
  const add = db.prepare<unknown[]>(
    'insert into events (seq, at, kind, task_id, node_id, caused_by, author, data, hash) ' +
      'values (?, ?, ?, ?, ?, ?, ?, ?, ?)',
  )
  const putEnds = db.prepare<unknown[]>(
    'update event_chain set head_seq = ?, head_hash = ?, pruned_seq = ?, pruned_hash = ?, ' +
      'kept_bytes = ? where id = 1',
  )
  const prune = createPruning(db, retention)

  function append(ends: ChainEnds, rows: readonly EventRow[]): ChainEnds {
    let { headSeq, headHash, keptBytes } = ends
    for (const row of rows) {
      const canonical = canonicalEvent(row)
      headHash = nextHash(headHash, canonical)
      headSeq = row[0]
      keptBytes += eventBytes(canonical)
      add.run(...row, Buffer.from(headHash, 'hex'))
    }
    return { ...ends, headSeq, headHash, keptBytes }
  }

  return {
    write(ends, rows, byAge) {
      const appended = rows.length === 0 ? ends : append(ends, rows)
      const { ends: after, removedByAge } = prune(appended, rows.length, byAge)
      if (after === ends) return { ends, removedByAge }
      const { headSeq, headHash, prunedSeq, prunedHash, keptBytes } = after
      putEnds.run(headSeq, Buffer.from(headHash, 'hex'), prunedSeq, Buffer.from(prunedHash, 'hex'), keptBytes)
      return { ends: after, removedByAge }
    },
  }
}

type Prune = (ends: ChainEnds, added: number, byAge: AgeAllowance) => WrittenEvents

function createPruning(db: Database.Database, { maxEvents, maxBytes }: EventRetention): Prune {
  const oldest = db
    .prepare<[number, number], [...EventRow, string]>(
      'select seq, at, kind, task_id, node_id, caused_by, author, data, lower(hex(hash)) ' +
        'from events where seq > ? order by seq limit ?',
    )
    .raw()
  const remove = db.prepare<unknown[]>('delete from events where seq <= ?')

  return (ends, added, byAge) => {
    const { headSeq } = ends
    let { prunedSeq, prunedHash, keptBytes } = ends
    let removedByAge = 0
    const isSurplus = (seq: number): boolean =>
      headSeq - seq >= maxEvents || (maxBytes !== null && keptBytes > maxBytes)
    const isTooOld = (seq: number): boolean => seq <= byAge.upTo && removedByAge < byAge.rows
    if (!isSurplus(prunedSeq + 1) && !isTooOld(prunedSeq + 1)) return { ends, removedByAge }
    const rows = oldest.iterate(prunedSeq, added + EXTRA_PRUNED_EVENTS)
    for (const [seq, at, kind, taskId, nodeId, causedBy, by, data, hash] of rows) {
      if (!isSurplus(seq)) {
        if (!isTooOld(seq)) break
        removedByAge += 1
      }
      prunedSeq = seq
      prunedHash = hash
      keptBytes -= eventBytes(canonicalEvent([seq, at, kind, taskId, nodeId, causedBy, by, data]))
    }
    if (prunedSeq === ends.prunedSeq) return { ends, removedByAge }
    remove.run(prunedSeq)
    return { ends: { ...ends, prunedSeq, prunedHash, keptBytes }, removedByAge }
  }
}
