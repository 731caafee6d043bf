/** Appends events to their chain and removes the oldest, all within the writer's transaction, so that file and chain agree at every moment. */
import type Database from 'better-sqlite3'
import { canonicalEvent, eventBytes, nextHash } from './event-chain.ts'
import type { EventRow } from './rows.ts'

/** How much is kept; whichever is reached first. */
export interface EventRetention {
  readonly maxEvents: number
  /** Bytes of the file, about. */
  readonly maxBytes: number | null
  readonly maxAgeMs: number | null
}

/** Besides as many events as came in, a commit removes at most this many old ones: a lowered limit is reached step by step. */
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
   * Within a transaction. @param now milliseconds since the Unix epoch.
   * @returns where the chain then ends; to be given to the next call once the transaction is through.
   */
  write(ends: ChainEnds, rows: readonly EventRow[], now: number): ChainEnds
}

/** The ends as the file has them. */
export function readChainEnds(db: Database.Database): ChainEnds {
  const query = db.prepare<unknown[], ChainEnds>(`select head_seq as headSeq, lower(hex(head_hash)) as headHash,
    pruned_seq as prunedSeq, lower(hex(pruned_hash)) as prunedHash, kept_bytes as keptBytes from event_chain`)
  const ends = query.get()
  if (ends === undefined) throw new Error('broken invariant: the store has no chain of events')
  return ends
}

export function createEventLog(db: Database.Database, retention: EventRetention): EventLog {
  const add = db.prepare<unknown[]>(
    'insert into events (seq, at, kind, task_id, node_id, caused_by, author, data, hash) values (?, ?, ?, ?, ?, ?, ?, ?, ?)',
  )
  const putEnds = db.prepare<unknown[]>(
    'update event_chain set head_seq = ?, head_hash = ?, pruned_seq = ?, pruned_hash = ?, kept_bytes = ? where id = 1',
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
    write(ends, rows, now) {
      const after = prune(rows.length === 0 ? ends : append(ends, rows), rows.length, now)
      if (after === ends) return ends
      const { headSeq, headHash, prunedSeq, prunedHash, keptBytes } = after
      putEnds.run(headSeq, Buffer.from(headHash, 'hex'), prunedSeq, Buffer.from(prunedHash, 'hex'), keptBytes)
      return after
    },
  }
}

type Prune = (ends: ChainEnds, added: number, now: number) => ChainEnds

function createPruning(db: Database.Database, { maxEvents, maxBytes, maxAgeMs }: EventRetention): Prune {
  const oldest = db
    .prepare<[number, number], [...EventRow, string]>(
      `select seq, at, kind, task_id, node_id, caused_by, author, data, lower(hex(hash)) from events where seq > ? order by seq limit ?`,
    )
    .raw()
  const remove = db.prepare<unknown[]>('delete from events where seq <= ?')

  return (ends, added, now) => {
    const { headSeq } = ends
    let { prunedSeq, prunedHash, keptBytes } = ends
    const isPast = ([seq, at]: readonly [number, number, ...unknown[]]): boolean =>
      headSeq - seq >= maxEvents || (maxBytes !== null && keptBytes > maxBytes) || (maxAgeMs !== null && at < now - maxAgeMs)
    if (maxAgeMs === null && headSeq - prunedSeq <= maxEvents && (maxBytes === null || keptBytes <= maxBytes)) return ends
    for (const [seq, at, kind, taskId, nodeId, causedBy, by, data, hash] of oldest.iterate(prunedSeq, added + EXTRA_PRUNED_EVENTS)) {
      if (!isPast([seq, at])) break
      prunedSeq = seq
      prunedHash = hash
      keptBytes -= eventBytes(canonicalEvent([seq, at, kind, taskId, nodeId, causedBy, by, data]))
    }
    if (prunedSeq === ends.prunedSeq) return ends
    remove.run(prunedSeq)
    return { ...ends, prunedSeq, prunedHash, keptBytes }
  }
}
