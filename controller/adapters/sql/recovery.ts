/** Puts a store into recovery: it lacks a part of its history, with the consent of an operator. */
import { randomInt } from 'node:crypto'
import { sql, type Kysely } from 'kysely'
import { epochAfterLoss } from '../../model/epoch-after-loss.ts'
import { SESSION_ID_PREFIX, type RecoveryRecord } from '../../ports/store.ts'
import type { Schema } from './schema.ts'

export interface Recovery extends RecoveryRecord {
  /** No known epoch is above this one. */
  readonly highestEpoch: number
  /** Text of the mark that the store need not reach anymore, or null. */
  readonly supersedes: string | null
}

/** Runs within a transaction, on a store with the current schema. The next start creates a new mark. */
export async function enterRecovery(
  db: Kysely<Schema>,
  { reason, sinceWallMs, highestEpoch, supersedes }: Recovery,
): Promise<void> {
  const epoch = epochAfterLoss(highestEpoch, sinceWallMs, randomInt)
  await sql`insert into marks (id, epoch, next_task_seq, next_event_seq, next_decision)
    select 1, ${sql.lit(epoch)}, coalesce((select max(seq) from tasks), 0) + 1, head_seq + 1,
      coalesce((select max(number) from decisions), 0) + 1
    from event_chain where true
    on conflict (id) do update set epoch = excluded.epoch`.execute(db)
  await db
    .updateTable('history')
    .set(({ eb }) => ({
      commits: eb('commits', '+', 1),
      is_marked: 0,
      supersedes,
      recovery_reason: reason,
      recovery_since: sinceWallMs,
    }))
    .execute()
  // One that ended in the lost part would be valid again.
  await db.deleteFrom('tokens').where('id', 'like', `${SESSION_ID_PREFIX}%`).execute()
}
