/** Puts a store into recovery: it lacks a part of its history, with the consent of an operator. */
import { randomInt } from 'node:crypto'
import type Database from 'better-sqlite3'
import { epochAfterLoss } from '../../model/epoch-after-loss.ts'
import type { RecoveryRecord } from '../../ports/store.ts'

export interface Recovery extends RecoveryRecord {
  /** No known epoch is above this one. */
  readonly highestEpoch: number
  /** Text of the mark that the store need not reach anymore, or null. */
  readonly supersedes: string | null
}

/** In one transaction, on a store with the current schema. A start then creates a new mark. */
export function enterRecovery(
  db: Database.Database,
  { reason, sinceWallMs, highestEpoch, supersedes }: Recovery,
): void {
  const epoch = epochAfterLoss(highestEpoch, sinceWallMs, randomInt)
  db.transaction(() => {
    db.prepare<[number]>(
      `insert into marks (id, epoch, next_task_seq, next_event_seq, next_decision)
       select 1, ?, coalesce((select max(seq) from tasks), 0) + 1, head_seq + 1,
         coalesce((select max(number) from decisions), 0) + 1
       from event_chain where true
       on conflict (id) do update set epoch = excluded.epoch`,
    ).run(epoch)
    db.prepare(
      'update history set commits = commits + 1, is_marked = 0, supersedes = ?, ' +
        'recovery_reason = ?, recovery_since = ?',
    ).run(supersedes, reason, sinceWallMs)
  })()
}
