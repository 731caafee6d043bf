/** Tables of the store's history: its epochs, its number of transactions, and whether a part is missing. */
import type { Kysely } from 'kysely'
import { StoreFault, type RecoveryRecord, type StoredState } from '../../ports/store.ts'
import type { BatchRows } from './rows.ts'
import type { Schema } from './schema.ts'

/** The part of StoredState that describes the extent of the store. */
export type StoredHistory = Pick<StoredState, 'mark' | 'recovery' | 'epochs'>

export function readHistory(db: Kysely<Schema>): Promise<StoredHistory> {
  return db
    .selectFrom('history')
    .innerJoin('event_chain', 'event_chain.id', 'history.id')
    .leftJoin('marks', 'marks.id', 'history.id')
    .select(['recovery_reason', 'recovery_since', 'head_seq', 'epoch', 'head_hash'])
    .executeTakeFirstOrThrow()
    .then(async ({ recovery_reason, recovery_since, head_seq, epoch, head_hash }) => ({
      mark: { epoch: epoch ?? 0, eventSeq: head_seq, chain: Buffer.from(head_hash).toString('hex') },
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

export type EpochRow = readonly [epoch: number, firstEventSeq: number, controller: string | null]

/** The epochs after `lastEpoch` that begin with these batches. @param headSeq the last event before them */
export function newEpochs(batches: readonly BatchRows[], lastEpoch: number, headSeq: number): EpochRow[] {
  const added: EpochRow[] = []
  let [last, firstEventSeq] = [lastEpoch, headSeq + 1]
  for (const { marks, events, controller } of batches) {
    const [epoch] = marks
    if (epoch > last) {
      added.push([epoch, firstEventSeq, controller])
      last = epoch
    }
    firstEventSeq += events.length
  }
  return added
}

/** A later epoch has written: the batch of this one is refused. */
export function fencedFault(epoch: number): StoreFault {
  return new StoreFault(`a controller with a later epoch than ${epoch} has taken over: this one must stop`)
}
