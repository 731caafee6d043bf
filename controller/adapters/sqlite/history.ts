/** Tables of the store's history: its epochs, its number of transactions, and whether a part is missing. */
import type Database from 'better-sqlite3'
import { sql, type Kysely } from 'kysely'
import { MAX_EPOCH_RECORDS, type RecoveryRecord, type StoredState } from '../../ports/store.ts'
import type { BatchRows } from './rows.ts'
import type { Schema } from './schema.ts'

/** The part of StoredState that describes the extent of the store. */
export type StoredHistory = Pick<StoredState, 'mark' | 'recovery' | 'epochs'>

export function readHistory(db: Kysely<Schema>): Promise<StoredHistory> {
  return db
    .selectFrom('history')
    .innerJoin('event_chain', 'event_chain.id', 'history.id')
    .leftJoin('marks', 'marks.id', 'history.id')
    .select([
      'recovery_reason',
      'recovery_since',
      'head_seq',
      'epoch',
      sql<string>`lower(hex(head_hash))`.as('chain'),
    ])
    .executeTakeFirstOrThrow()
    .then(async ({ recovery_reason, recovery_since, head_seq, epoch, chain }) => ({
      mark: { epoch: epoch ?? 0, eventSeq: head_seq, chain },
      recovery:
        recovery_reason === null
          ? null
          : { reason: recovery_reason as RecoveryRecord['reason'], sinceWallMs: recovery_since ?? 0 },
      epochs: (await db.selectFrom('epochs').selectAll().orderBy('epoch').execute()).map((row) => ({
        epoch: row.epoch,
        firstEventSeq: row.first_event_seq,
        ...(row.controller === null ? {} : { controller: row.controller }),
      })),
    }))
}

/**
 * @returns a function that counts one transaction and returns their number: call it after the batches' marks
 * were accepted and before their events are added
 */
export function createHistoryWriter(db: Database.Database): (batches: readonly BatchRows[]) => number {
  const newest = db.prepare<[], number | null>('select max(epoch) from epochs').pluck()
  const headSeq = db.prepare<[], number>('select head_seq from event_chain').pluck()
  const addEpoch = db.prepare<[number, number, string | null]>(
    'insert into epochs (epoch, first_event_seq, controller) values (?, ?, ?)',
  )
  const dropEpochs = db.prepare<[number]>(
    'delete from epochs where epoch <= (select epoch from epochs order by epoch desc limit 1 offset ?)',
  )
  const count = db.prepare<[], number>('update history set commits = commits + 1 returning commits').pluck()
  const endRecovery = db.prepare('update history set recovery_reason = null, recovery_since = null')
  let lastEpoch = newest.get() ?? 0

  function noteEpochs(batches: readonly BatchRows[]): void {
    let firstEventSeq = (headSeq.get() ?? 0) + 1
    for (const { marks, events, controller } of batches) {
      const [epoch] = marks
      if (epoch > lastEpoch) {
        addEpoch.run(epoch, firstEventSeq, controller)
        dropEpochs.run(MAX_EPOCH_RECORDS)
        lastEpoch = epoch
      }
      firstEventSeq += events.length
    }
  }

  return (batches) => {
    const commits = count.get()
    if (commits === undefined) throw new Error('broken invariant: the store has no history')
    if (batches.some(({ marks }) => marks[0] > lastEpoch)) noteEpochs(batches)
    if (batches.some((batch) => batch.endsRecovery)) endRecovery.run()
    return commits
  }
}
