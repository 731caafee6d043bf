/**
 * Appends events to their chain and removes the oldest, within the writer's transaction, so that file and
 * chain always agree.
 */
import type Database from 'better-sqlite3'
import {
  EXTRA_PRUNED,
  isEventDue,
  linkEvents,
  oldEvent,
  pruneEvents,
  type ChainEnds,
  type EventRetention,
  type OldEvent,
  type PrunedEvents,
} from '../sql/pruning.ts'
import type { AgeAllowance } from '../sql/retention-clock.ts'
import type { EventRow } from '../sql/rows.ts'

export interface EventLog {
  /**
   * Call within a transaction. The returned ends are for the next call, once the transaction is committed.
   */
  write(ends: ChainEnds, rows: readonly EventRow[], byAge: AgeAllowance): PrunedEvents
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
  const oldestRows = db
    .prepare<[number, number], [...EventRow, string]>(
      'select seq, at, kind, task_id, node_id, caused_by, author, data, lower(hex(hash)) ' +
        'from events where seq > ? order by seq limit ?',
    )
    .raw()
  const remove = db.prepare<unknown[]>('delete from events where seq <= ?')

  function append(ends: ChainEnds, rows: readonly EventRow[]): ChainEnds {
    const linked = linkEvents(ends, rows)
    rows.forEach((row, i) => add.run(...row, Buffer.from(linked.hashes[i] ?? '', 'hex')))
    return linked.ends
  }

  function* oldest(prunedSeq: number, limit: number): Generator<OldEvent> {
    for (const [seq, at, kind, taskId, nodeId, causedBy, by, data, hash] of oldestRows.iterate(
      prunedSeq,
      limit,
    ))
      yield oldEvent([seq, at, kind, taskId, nodeId, causedBy, by, data], hash)
  }

  function prune(ends: ChainEnds, added: number, byAge: AgeAllowance): PrunedEvents {
    if (!isEventDue(ends, retention, byAge)) return { ends, removedByAge: 0 }
    const pruned = pruneEvents(ends, oldest(ends.prunedSeq, added + EXTRA_PRUNED), retention, byAge)
    if (pruned.ends !== ends) remove.run(pruned.ends.prunedSeq)
    return pruned
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
