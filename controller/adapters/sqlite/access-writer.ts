/**
 * Writes tokens, secrets and audit entries into their tables. The audit is bounded: the newest of each kind
 * are kept.
 */
import type Database from 'better-sqlite3'
import type { AuditKind } from '../../ports/store.ts'
import { kyselyOf } from './dialect.ts'
import type { AccessRows } from '../sql/rows.ts'
import { RETAIN_AUDITS } from '../sql/retained-audits.ts'
import { summed } from '../sql/row-sums.ts'

/** Number of new entries after which the surplus is removed. */
const PRUNE_EVERY = 1_000

type Statement = Database.Statement<unknown[]>
type Compilable = { compile(): { readonly sql: string } }

/** @returns a function that adds rows within the current transaction */
export function createAccessWriter(
  db: Database.Database,
  retain: Readonly<Record<AuditKind, number>> = RETAIN_AUDITS,
  pruneEvery = PRUNE_EVERY,
): (rows: AccessRows) => void {
  const q = kyselyOf(db)
  const prepare = (query: Compilable): Statement => db.prepare<unknown[]>(query.compile().sql)
  const putToken = prepare(q.replaceInto('tokens').values({ id: '', created_at: 0, record: '', sum: 0 }))
  const revokeToken = prepare(q.deleteFrom('tokens').where('id', '=', ''))
  const putSecret = prepare(q.replaceInto('secrets').values({ id: '', record: '', sum: 0 }))
  const deleteSecret = prepare(q.deleteFrom('secrets').where('id', '=', ''))
  const putAudit = prepare(
    q
      .replaceInto('audits')
      .values({ seq: 0, at: 0, kind: '', actor: '', action: '', outcome: '', target: '', record: '' }),
  )
  const prune = createPruning(db, retain)
  // Due at the start, so that a lowered limit applies soon.
  let sincePruned = pruneEvery
  return ({ tokens, revokedTokenIds, secrets, deletedSecretIds, audits }) => {
    for (const id of deletedSecretIds) deleteSecret.run(id)
    for (const row of secrets) putSecret.run(summed(row))
    for (const id of revokedTokenIds) revokeToken.run(id)
    for (const row of tokens) putToken.run(summed(row))
    for (const row of audits) putAudit.run(row)
    sincePruned += audits.length
    if (sincePruned < pruneEvery) return
    sincePruned = 0
    prune()
  }
}

function createPruning(db: Database.Database, retain: Readonly<Record<AuditKind, number>>): () => void {
  const firstKept = db
    .prepare<[string, number], number>(
      'select seq from audits where kind = ? order by seq desc limit 1 offset ?',
    )
    .pluck()
  const remove = db.prepare<[string, number]>('delete from audits where kind = ? and seq < ?')
  return () => {
    for (const [kind, count] of Object.entries(retain)) {
      const seq = firstKept.get(kind, count - 1)
      if (seq !== undefined) remove.run(kind, seq)
    }
  }
}
