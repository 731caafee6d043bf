/** The audit table has a limit per kind, so that a flood of one kind replaces no entry of another. */
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { createAccessWriter } from '../../controller/adapters/sqlite/access-writer.ts'
import { kyselyOf } from '../../controller/adapters/sqlite/dialect.ts'
import { migrate } from '../../controller/adapters/sqlite/migrations.ts'
import { encodeBatch } from '../../controller/adapters/sql/rows.ts'
import { noAccessChanges } from '../../controller/ports/store.ts'
import type { AuditKind } from '../../controller/ports/store.ts'
import { aBatch, anAudit } from '../support/store-builders.ts'

test('The audit table keeps the newest entries of each kind', async () => {
  const db = new Database(':memory:')
  await migrate(kyselyOf(db), ':memory:', 0)
  const write = createAccessWriter(db, { control: 5, work: 3, refusal: 2 }, 4)
  let seq = 0
  const put = (kind: AuditKind, count: number) => {
    const audits = Array.from({ length: count }, () => anAudit({ seq: (seq += 1), kind }))
    const { access } = encodeBatch(aBatch({ access: { ...noAccessChanges(), audits } }))
    if (access !== null) write(access)
  }
  const kept = (kind: AuditKind) =>
    db.prepare('select seq from audits where kind = ? order by seq').pluck().all(kind)
  put('control', 4)
  put('work', 20)
  put('refusal', 20)
  expect([kept('control'), kept('work'), kept('refusal')]).toEqual([
    [1, 2, 3, 4],
    [22, 23, 24],
    [43, 44],
  ])
  put('control', 4)
  expect(kept('control')).toEqual([4, 45, 46, 47, 48])
  db.close()
})

test('An amended audit entry is counted once', async () => {
  const db = new Database(':memory:')
  await migrate(kyselyOf(db), ':memory:', 0)
  const write = createAccessWriter(db, { control: 2, work: 2, refusal: 2 }, 1)
  for (const status of [null, 404, 409]) {
    const { access } = encodeBatch(
      aBatch({ access: { ...noAccessChanges(), audits: [anAudit({ seq: 1, status })] } }),
    )
    if (access !== null) write(access)
  }
  expect(db.prepare('select json_extract(record, ?) from audits').pluck().all('$.status')).toEqual([409])
  db.close()
})
