/** Backup, restore, verification and migration of a PostgreSQL store, through the format of backups. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  backUpPostgres,
  migrateToPostgres,
  previewPostgresRestore,
  restorePostgres,
  verifyPostgres,
  verifyPostgresEvents,
} from '../../controller/adapters/postgres/commands.ts'
import { createPostgresStore } from '../../controller/adapters/postgres/store.ts'
import { createSqliteStore, STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { verifyStore } from '../../controller/adapters/sqlite/verify.ts'
import { noAccessChanges, type Batch, type Store } from '../../controller/ports/store.ts'
import {
  aBatch,
  aConfig,
  aDecision,
  aFinalTask,
  aNode,
  anAudit,
  anEvent,
  aRunningTask,
  aTask,
  aToken,
  eventQuery,
} from '../support/store-builders.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'

/** Records of every kind. */
const CONTENT: Partial<Batch> = {
  tasks: [aTask({ seq: 1 }), aFinalTask({ seq: 2, name: 'a\0b' }), aRunningTask({ seq: 3 })],
  nodes: [
    aNode({
      gpus: [0, 1, 2, 3].map((index) => ({
        ...{ index, model: 'H100', physicalMib: 81_559, foreignMib: 0, roundNonP0: 0, roundP0: 0 },
      })),
    }),
  ],
  groups: [{ id: 'a100', description: '', nodeIds: ['node-1'] }],
  config: aConfig(1),
  events: [anEvent(1), anEvent(2), anEvent(3)],
  decisions: [aDecision(1)],
  access: {
    ...noAccessChanges(),
    tokens: [aToken({})],
    secrets: [{ owner: 'alice', name: 'KEY', sealed: 'x', updatedAt: 1 }],
    audits: [anAudit({ seq: 1 })],
  },
  submissionKeys: { added: [{ seq: 1, key: 'k', body: 'b', taskId: 'task-1', at: 1 }], keptFromSeq: 1 },
  marks: { epoch: 7, nextTaskSeq: 4, nextEventSeq: 4, nextDecision: 2 },
}

describe.skipIf(whyNoPostgres() !== null)('a PostgreSQL store', () => {
  let server: PostgresServer
  const folder = mkdtempSync(join(tmpdir(), 'headroom-store-'))
  const markBase = join(folder, 'postgres')
  const path = join(folder, STORE_FILE)
  const at = new Date('2027-01-01T00:00:00Z')
  const place = () => ({ place: server.place, markBase })
  const open = () => createPostgresStore({ ...place(), kind: 'trial', lockWaitMs: 0 })
  beforeAll(async () => {
    server = await PostgresServer.start({ fsync: false })
  })
  beforeEach(async () => {
    await server.clear()
    for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true })
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  async function filled(store: Store) {
    await store.commit(aBatch(CONTENT))
    const told = await toldBy(store)
    await store.close()
    return told
  }

  async function toldBy(store: Store) {
    const { reads } = store
    return [await store.load(), await reads.events(eventQuery()), await reads.task('task-2')]
  }

  it('is backed up while a controller runs, and the copy is a store of SQLite', async () => {
    const store = open()
    await store.commit(aBatch(CONTENT))
    const backup = join(folder, 'backup.db')
    await backUpPostgres(place(), backup)
    const told = await toldBy(store)
    await store.close()
    expect(await verifyStore(backup)).toMatchObject({ tasks: 3, events: 3, epoch: 7 })
    // A copy that was not restored is refused, because it may be old.
    const db = new Database(backup)
    db.exec('update history set is_marked = 0')
    db.close()
    const copy = createSqliteStore({ path: backup, kind: 'trial' })
    expect(await toldBy(copy)).toEqual(told)
    await copy.close()
    expect(readdirSync(folder).filter((name) => /partial|copy-/.test(name))).toEqual([])
  })

  it('is replaced by a backup only when no controller runs, and stays under another name', async () => {
    await filled(open())
    const backup = join(folder, 'backup.db')
    await backUpPostgres(place(), backup)
    const store = open()
    await store.commit(aBatch({ tasks: [aTask({ seq: 4 })], marks: { ...marks, nextTaskSeq: 5 } }))
    await expect(restorePostgres(backup, place(), { isForced: true, at })).rejects.toThrow(/in use/)
    expect(await store.load()).toMatchObject({ openTasks: [{ seq: 1 }, { seq: 3 }, { seq: 4 }] })
    await store.close()
    await expect(restorePostgres(backup, place(), { isForced: false, at })).rejects.toThrow(/--force/)
    expect((await previewPostgresRestore(backup, place())).lost?.tasks).toBe(1)
    const { aside } = await restorePostgres(backup, place(), { isForced: true, at })
    expect(await server.query(`select seq from ${aside ?? ''}.tasks where seq = 4`)).toEqual([{ seq: '4' }])
    const restored = open()
    const state = await restored.load()
    await restored.close()
    expect(state.openTasks.map(({ seq }) => seq)).toEqual([1, 3])
    expect(state.recovery).toMatchObject({ reason: 'restored' })
    expect(state.marks.epoch).toBeGreaterThan(7)
    await server.query(`drop schema ${aside ?? ''} cascade`)
  })
  const marks = { epoch: 7, nextTaskSeq: 4, nextEventSeq: 4, nextDecision: 2 }

  it('is unchanged when a restore fails half-way', async () => {
    const told = await filled(open())
    const backup = join(folder, 'backup.db')
    await backUpPostgres(place(), backup)
    await server.query('create schema headroom_before_restore_20270101000000000')
    await expect(restorePostgres(backup, place(), { isForced: true, at })).rejects.toThrow(/already exists/)
    await server.query('drop schema headroom_before_restore_20270101000000000')
    const store = open()
    expect(await toldBy(store)).toEqual(told)
    await store.close()
  })

  it.each([
    ['a changed column', "update headroom.tasks set name = 'c' where seq = 1", /row 1 of table tasks/],
    ['a missing event', 'delete from headroom.events where seq = 2', /^events: 1 of 1 to 3 are missing/m],
    [
      'a store that went back to an earlier state',
      'update headroom.history set commits = 0',
      /^mark: .*back to an earlier state/,
    ],
  ])('is found damaged by a verification: %s', async (_, damage, expected) => {
    await filled(open())
    expect((await verifyPostgres(place())).problems).toEqual([])
    await server.query(damage)
    const { problems } = await verifyPostgres(place())
    expect(problems.join('\n')).toMatch(expected)
  })

  it('has a chain of events that is verified like that of a file', async () => {
    await filled(open())
    expect(await verifyPostgresEvents(place(), [])).toMatchObject({ isIntact: true, events: 3 })
    await server.query("update headroom.events set data = '{}' where seq = 2")
    expect(await verifyPostgresEvents(place(), [])).toMatchObject({ isIntact: false, brokenSeq: 2 })
  })

  it('takes over a store of SQLite with its whole history, and the file is put aside', async () => {
    const told = await filled(createSqliteStore({ dataDir: folder, kind: 'trial' }))
    const { aside } = await migrateToPostgres(path, place(), at)
    expect(existsSync(path)).toBe(false)
    expect(existsSync(aside ?? '')).toBe(true)
    const store = open()
    const [state, events, task] = await toldBy(store)
    expect([state, events, task]).toEqual(told)
    await store.commit(aBatch({ events: [anEvent(4)], marks: { ...marks, nextEventSeq: 5 } }))
    await store.close()
    expect((await verifyPostgres(place())).problems).toEqual([])
    const again = createSqliteStore({ dataDir: folder })
    await expect(again.load()).rejects.toThrow(/a store existed before/)
    await again.close()
  })

  it('takes over no store that a controller uses, and none into a database with a store', async () => {
    const sqlite = createSqliteStore({ dataDir: folder })
    await sqlite.commit(aBatch(CONTENT))
    await expect(migrateToPostgres(path, place(), at)).rejects.toThrow(/in use by another controller/)
    await sqlite.close()
    await filled(open())
    await expect(migrateToPostgres(path, place(), at)).rejects.toThrow(/name an empty database/)
    expect(existsSync(path)).toBe(true)
  })
})
