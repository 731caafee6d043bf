/** Writes the tables of the history: epochs, the number of transactions, the end of a recovery. */
import type Database from 'better-sqlite3'
import { MAX_EPOCH_RECORDS } from '../../ports/store.ts'
import { newEpochs, type EpochRow } from '../sql/history.ts'
import type { BatchRows } from '../sql/rows.ts'

/**
 * @returns a function that counts one transaction and returns their number: call it after the batches' marks
 * were accepted and before their events are added
 */
export function createHistoryWriter(db: Database.Database): (batches: readonly BatchRows[]) => number {
  const newest = db.prepare<[], number | null>('select max(epoch) from epochs').pluck()
  const headSeq = db.prepare<[], number>('select head_seq from event_chain').pluck()
  const addEpoch = db.prepare<[...EpochRow]>(
    'insert into epochs (epoch, first_event_seq, controller) values (?, ?, ?)',
  )
  const dropEpochs = db.prepare<[number]>(
    'delete from epochs where epoch <= (select epoch from epochs order by epoch desc limit 1 offset ?)',
  )
  const count = db.prepare<[], number>('update history set commits = commits + 1 returning commits').pluck()
  const endRecovery = db.prepare('update history set recovery_reason = null, recovery_since = null')
  let lastEpoch = newest.get() ?? 0

  function noteEpochs(batches: readonly BatchRows[]): void {
    for (const row of newEpochs(batches, lastEpoch, headSeq.get() ?? 0)) {
      addEpoch.run(...row)
      dropEpochs.run(MAX_EPOCH_RECORDS)
      ;[lastEpoch] = row
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
