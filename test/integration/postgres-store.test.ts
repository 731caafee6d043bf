/** What a PostgreSQL store shares with SQLite's, and what only it has. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { OWN_TABLES } from '../../controller/adapters/postgres/base-schema.ts'
import { createCommitLogWindow } from '../../controller/adapters/postgres/commit-log-window.ts'
import { connect, READING } from '../../controller/adapters/postgres/session.ts'
import { POSTGRES_SCHEMA_VERSION } from '../../controller/adapters/postgres/schema-steps.ts'
import { createPostgresStore } from '../../controller/adapters/postgres/store.ts'
import { readStoreUrl } from '../../controller/adapters/postgres/store-url.ts'
import { kyselyOf } from '../../controller/adapters/sqlite/dialect.ts'
import { migrate, SCHEMA_VERSION } from '../../controller/adapters/sqlite/migrations.ts'
import { createSqliteStore } from '../../controller/adapters/sqlite/store.ts'
import { noAccessChanges, type Store } from '../../controller/ports/store.ts'
import { aBatch, aFinalTask, anAudit, anEvent, eventQuery, finishedQuery } from '../support/store-builders.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'
import { BOTH, TcpProxy } from '../support/tcp-proxy.ts'

describe.skipIf(whyNoPostgres() !== null)('a PostgreSQL store', () => {
  let server: PostgresServer
  const dataDir = mkdtempSync(join(tmpdir(), 'headroom-store-'))
  const markBase = join(dataDir, 'postgres')
  beforeAll(async () => {
    server = await PostgresServer.start({ fsync: false })
  })
  beforeEach(async () => {
    await server.clear()
    rmSync(`${markBase}.mark`, { force: true })
  })
  afterAll(() => rmSync(dataDir, { recursive: true }))

  const open = (options: Partial<Parameters<typeof createPostgresStore>[0]> = {}) =>
    createPostgresStore({ place: server.place, markBase, ...options })
  const refusal = async (options: Partial<Parameters<typeof createPostgresStore>[0]> = {}) => {
    const store = open(options)
    const why = await store.load().then(
      () => 'opened',
      (fault: Error) => fault.message,
    )
    await store.close()
    return why
  }
  const marks = (nextEventSeq: number) => ({ epoch: 1, nextTaskSeq: 1, nextEventSeq, nextDecision: 1 })

  it('has the tables and columns of SQLite, and the same version', async () => {
    await refusal()
    const found = await server.query<{ table: string; column: string }>(
      `select table_name as table, column_name as column from information_schema.columns
       where table_schema = 'headroom'`,
    )
    const sqlite = new Database(':memory:')
    await migrate(kyselyOf(sqlite), ':memory:', 0)
    const expected = sqlite
      .prepare<[], { table: string; column: string }>(
        `select m.name as "table", c.name as "column" from sqlite_schema m, pragma_table_info(m.name) c
         where m.type = 'table'`,
      )
      .all()
    const names = (columns: readonly { readonly table: string; readonly column: string }[]) =>
      columns
        .filter(({ table }) => !(OWN_TABLES as readonly string[]).includes(table))
        .map(({ table, column }) => `${table}.${column}`)
        .sort((a, b) => (a < b ? -1 : 1))
    expect(names(found)).toEqual(names(expected))
    expect(POSTGRES_SCHEMA_VERSION).toBe(SCHEMA_VERSION)
  })

  // A read would wait for 65 s.
  it('ends while the way to its server is cut in a read', { timeout: 45_000 }, async () => {
    const proxy = await TcpProxy.start(server.port)
    const hosts = [{ host: '127.0.0.1', port: proxy.port }]
    const store = open({ place: { ...server.place, hosts } })
    await store.load()
    await store.reads.finishedTasks(finishedQuery())
    const isCut = proxy.onSent('from "tasks"', 30_000, () => proxy.cut(BOTH))
    const read = store.reads.finishedTasks(finishedQuery()).then(
      () => 'answered',
      () => 'failed',
    )
    expect(await isCut).toBe(true)
    await store.close()
    expect(await read).toBe('failed')
    await proxy.end()
  })

  it('compresses the commit log with LZ4 where the server can', async () => {
    const [can] = await server.query<{ can: boolean }>(
      `select 'lz4' = any(enumvals) as can from pg_settings where name = 'default_toast_compression'`,
    )
    const store = open()
    await store.load()
    const events = Array.from({ length: 500 }, (_, i) => anEvent(i + 1))
    await store.commit(aBatch({ events, marks: marks(501) }))
    await store.close()
    expect(await server.query('select pg_column_compression(batch) as by from headroom.commit_log')).toEqual([
      { by: can?.can === true ? 'lz4' : 'pglz' },
    ])
  })

  it('links, counts and removes events as SQLite does, also after it was opened again', async () => {
    const limits = { retainEvents: 60, retainEventBytes: 20_000, retainDecisions: 10 }
    let stores: readonly Store[] = []
    const reopen = async () => {
      await Promise.all(stores.map((store) => store.close()))
      stores = [open(limits), createSqliteStore({ dataDir, ...limits })]
    }
    let seq = 0
    for (let round = 0; round < 4; round++) {
      if (round % 2 === 0) await reopen()
      for (let commit = 0; commit < 20; commit++) {
        const events = Array.from({ length: commit % 4 }, () => anEvent((seq += 1)))
        for (const store of stores) await store.commit(aBatch({ events, marks: marks(seq + 1) }))
      }
      const [ours, theirs] = await Promise.all(stores.map(told))
      expect(ours).toEqual(theirs)
    }
    await Promise.all(stores.map((store) => store.close()))
  })

  async function told(store: Store) {
    return [await store.load(), await store.reads.eventRange(), await store.reads.events(eventQuery())]
  }

  it('stores texts that PostgreSQL cannot store', async () => {
    const store = open()
    const task = aFinalTask({ name: 'a\0b\uD800c' })
    const audits = [anAudit({ seq: 1, target: 'GET /\0' })]
    await store.commit(aBatch({ tasks: [task], access: { ...noAccessChanges(), audits } }))
    expect(await store.reads.finishedTasks(finishedQuery())).toEqual([task])
    await store.close()
  })

  it('that went back to an earlier state is refused, until an operator accepts the loss', async () => {
    const store = open()
    await store.commit(aBatch({ events: [anEvent(1)], marks: marks(2) }))
    await server.query('create schema kept; create table kept.chain as table headroom.event_chain')
    await store.commit(aBatch({ events: [anEvent(2), anEvent(3)], marks: marks(4) }))
    await store.close()
    await server.query(`delete from headroom.events where seq > 1; delete from headroom.event_chain;
      insert into headroom.event_chain table kept.chain; drop schema kept cascade;
      update headroom.history set commits = commits - 1`)
    const why = await refusal()
    expect(why).toMatch(
      /went back to an earlier state: 2 acknowledged events are missing, 2 to 3 .*--accept-loss (\S+)\./,
    )
    const [, mark = ''] = /--accept-loss (\S+)\.$/.exec(why) ?? []
    expect(await refusal({ acceptLoss: 'another' })).toMatch(/another does not match the mark/)
    const accepted = open({ acceptLoss: mark })
    const state = await accepted.load()
    await accepted.close()
    expect(state.recovery).toMatchObject({ reason: 'loss_accepted' })
    expect(state.marks.epoch).toBeGreaterThan(1)
    expect(await refusal()).toBe('opened')
  })

  it('is refused when it is empty and was not before, or is expected', async () => {
    expect(await refusal({ isStoreExpected: true })).toMatch(/CONTROLLER_EXPECT_STORE/)
    expect(await refusal()).toBe('opened')
    await server.clear()
    expect(await refusal()).toMatch(/is empty, but contained a store before/)
  })

  it('is refused when it is of another kind, or of a newer version, and stays as it was', async () => {
    expect(await refusal({ kind: 'trial' })).toBe('opened')
    expect(await refusal({ kind: 'live' })).toMatch(/holds a trial cluster/)
    await server.query("insert into headroom.schema_version values (1000, 'later', 0)")
    expect(await refusal()).toMatch(/written by a newer Headroom \(schema 1000/)
  })

  it.each([
    ['a missing database', '/absent', /does not exist \(3D000/],
    ['a missing user', '/postgres', /refuses this user \(28000/],
  ])('names %s in one line', async (what, path, expected) => {
    const user = what === 'a missing user' ? 'stranger' : 'headroom'
    const place = readStoreUrl(`postgres://${user}:hidden@127.0.0.1:${server.port}${path}`)
    if (place === undefined) throw new Error('no URL')
    const why = await refusal({ place })
    expect(why).toMatch(expected)
    expect(why).not.toMatch(/hidden|\n/)
  })

  it('is looked at without compiling the statement, also before the tables have statistics', async () => {
    await refusal()
    const { client } = await connect(server.place, READING)
    const { rows } = await client.query<{ readonly 'QUERY PLAN': string }>(
      'explain select * from headroom.leader, headroom.history, headroom.lease',
    )
    await client.end()
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    expect(Number(/\.\.(\d+)/.exec(plan)?.[1])).toBeGreaterThan(100_000)
    expect(plan).not.toContain('JIT')
  })

  it('is found among several hosts, and one that does not answer is left out', async () => {
    const place = readStoreUrl(`postgres://headroom@127.0.0.1:1,127.0.0.1:${server.port}/postgres`)
    if (place === undefined) throw new Error('no URL')
    expect(await refusal({ place })).toBe('opened')
    const noTls = readStoreUrl(`postgres://headroom@127.0.0.1:${server.port}/postgres?sslmode=require`)
    if (noTls === undefined) throw new Error('no URL')
    expect(await refusal({ place: noTls })).toMatch(/TLS connection/)
  })
})

describe('the commit log', () => {
  it('keeps the entries of ten minutes, and at most its bytes; one part leaves per commit', () => {
    const window = createCommitLogWindow([], { maxAgeMs: 10_000, maxBytes: 1_000 })
    for (let seq = 1; seq <= 10; seq++) window.add(seq, seq * 1_000, 10)
    expect(window.advance()).toBeNull()
    window.add(11, 12_500, 10)
    expect(window.advance()).toBe(2)
    expect(window.advance()).toBe(3)
    expect(window.advance()).toBeNull()
    window.add(12, 13_600, 950)
    expect(window.advance()).toBe(4)
  })

  it('removes what an earlier controller left, once it is too old', () => {
    const parts = [
      { lastSeq: 1_000, at: 0, bytes: 10 },
      { lastSeq: 1_500, at: 9_000, bytes: 10 },
    ]
    const window = createCommitLogWindow(parts, { maxAgeMs: 10_000, maxBytes: 1_000 })
    window.add(1_501, 11_000, 10)
    expect(window.advance()).toBe(1_001)
    expect(window.advance()).toBeNull()
  })
})
