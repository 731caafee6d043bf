/** The event log in the file: chained, verified, and limited in number, bytes and age. */
import { copyFileSync, cpSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { kyselyOf } from '../../controller/adapters/sqlite/dialect.ts'
import { MIGRATIONS, migrate } from '../../controller/adapters/sqlite/migrations.ts'
import {
  createSqliteStore,
  STORE_FILE,
  type SqliteStoreOptions,
} from '../../controller/adapters/sqlite/store.ts'
import { verifyEvents } from '../../controller/adapters/sqlite/verify-events.ts'
import type { Event } from '../../controller/model/event.ts'
import type { Store } from '../../controller/ports/store.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { aBatch, aDecision, anEvent, eventQuery } from '../support/store-builders.ts'

const DAY_MS = 86_400_000
const ALL_DECISIONS = {
  afterNumber: 0,
  beforeNumber: null,
  taskId: null,
  nodeId: null,
  kind: null,
  limit: 1_000,
}

let dataDir: string
let file: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'headroom-sqlite-'))
  file = join(dataDir, STORE_FILE)
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

const marks = (nextEventSeq: number) => ({ epoch: 1, nextTaskSeq: 1, nextDecision: 1, nextEventSeq })

async function add(store: Store, first: number, count: number, changes: Partial<Event> = {}): Promise<void> {
  const events = Array.from({ length: count }, (_, index) => anEvent(first + index, changes))
  await store.commit(aBatch({ events, marks: marks(first + count) }))
}

async function keptBy(store: Store) {
  const kept = await store.reads.events(eventQuery({ limit: 100_000 }))
  return [kept[0]?.seq, kept.at(-1)?.seq, kept.length]
}

/** A closed store with events 1 to `count`, written in several transactions by two controllers. */
async function written(
  count: number,
  options: Partial<SqliteStoreOptions> = {},
  folder = dataDir,
): Promise<void> {
  for (const [from, to] of [
    [1, Math.floor(count / 2)],
    [Math.floor(count / 2) + 1, count],
  ] as const) {
    const store = createSqliteStore({ dataDir: folder, ...options })
    for (let seq = from; seq <= to; seq += 7)
      await add(store, seq, Math.min(7, to - seq + 1), { by: seq % 2 === 0 ? 'alice' : null })
    await store.close()
  }
}

/** Such a store with 40 events, written once. */
const FORTY = temporaryFolder()
beforeAll(() => written(40, {}, FORTY))
const fortyWritten = (): void => cpSync(FORTY, dataDir, { recursive: true })

function tamper(...statements: readonly string[]): void {
  const db = new Database(file)
  for (const statement of statements) db.exec(statement)
  db.close()
}

describe('the chain of events', () => {
  it('is the SHA-256 of the previous hash, a line feed, and the event as a JSON array', async () => {
    await written(3)
    let hash = '0'.repeat(64)
    for (let seq = 1; seq <= 3; seq++) {
      const { at, kind, taskId, nodeId, causedBy, data } = anEvent(seq)
      const text = JSON.stringify([
        seq,
        at,
        kind,
        taskId,
        nodeId,
        causedBy,
        seq >= 2 ? 'alice' : null,
        JSON.stringify(data),
      ])
      hash = createHash('sha256').update(`${hash}\n${text}`).digest('hex')
    }
    expect(verifyEvents(file)).toEqual({
      isIntact: true,
      events: 3,
      firstSeq: 1,
      lastSeq: 3,
      lastHash: hash,
      prunedSeq: 0,
    })
  })

  it('continues after a restart, and is intact in a copy and while a controller writes', async () => {
    fortyWritten()
    const store = createSqliteStore({ dataDir })
    await add(store, 41, 5)
    expect(verifyEvents(file)).toMatchObject({ isIntact: true, events: 45, lastSeq: 45 })
    await store.close()
    copyFileSync(file, `${file}.copy`)
    expect(verifyEvents(`${file}.copy`)).toEqual(verifyEvents(file))
  })

  it('of a store without events is intact', async () => {
    const store = createSqliteStore({ dataDir })
    await store.load()
    await store.close()
    expect(verifyEvents(file)).toMatchObject({ isIntact: true, events: 0, firstSeq: null, lastSeq: 0 })
  })

  it.each([
    ['data', `update events set data = replace(data, 'pending', 'running') where seq = 12`, 12],
    ['a time', 'update events set at = at + 1 where seq = 20', 20],
    ['the author', `update events set author = 'mallory' where seq = 8`, 8],
    ['the cause', 'update events set caused_by = 3 where seq = 30', 30],
    ['a hash', `update events set hash = zeroblob(32) where seq = 17`, 17],
    ['only a number', 'update events set seq = 4000 where seq = 25', 25],
    ['a row missing in the middle', 'delete from events where seq = 13', 13],
    ['the first row missing', 'delete from events where seq = 1', 1],
    ['the last rows missing', 'delete from events where seq > 37', 38],
    [
      'the last rows missing, with a matching end of the chain',
      'delete from events where seq > 37; update event_chain set head_seq = 37, head_hash = (select ' +
        'hash from events where seq = 37)',
      38,
    ],
    [
      'a row that was never written',
      'insert into events select 41, at, kind, task_id, node_id, caused_by, data, author, hash from ' +
        'events where seq = 40',
      41,
    ],
    [
      'two swapped rows',
      'update events set seq = -1 where seq = 9; update events set seq = 9 where seq = 10; update ' +
        'events set seq = 10 where seq = -1',
      9,
    ],
    ['the last hash of the chain', 'update event_chain set head_hash = zeroblob(32)', 40],
  ])('shows a change of %s, and names the first wrong event', (_, statement, brokenSeq) => {
    fortyWritten()
    tamper(statement)
    expect(verifyEvents(file)).toEqual({ isIntact: false, brokenSeq, why: expect.any(String) })
  })

  it('forged from some event on is detected by a hash that was noted elsewhere', async () => {
    fortyWritten()
    const before = verifyEvents(file)
    if (!before.isIntact) throw new Error('the log should be whole')
    const noted = { seq: before.lastSeq, hash: before.lastHash }
    for (const each of [file, `${file}.id`, `${file}.mark`]) rmSync(each)
    const forged = createSqliteStore({ dataDir })
    await add(forged, 1, 50)
    await forged.close()
    expect(verifyEvents(file)).toMatchObject({ isIntact: true, lastSeq: 50 })
    expect(verifyEvents(file, [noted])).toMatchObject({ isIntact: false, brokenSeq: 40 })
    expect(verifyEvents(file, [{ seq: 99, hash: noted.hash }])).toMatchObject({
      isIntact: false,
      brokenSeq: 99,
    })
  })

  it('stays intact when old events are removed, and begins with the last of them', async () => {
    await written(100, { retainEvents: 30 })
    expect(verifyEvents(file)).toMatchObject({
      isIntact: true,
      events: 30,
      firstSeq: 71,
      lastSeq: 100,
      prunedSeq: 70,
    })
    tamper('delete from events where seq = 71')
    expect(verifyEvents(file)).toMatchObject({ isIntact: false, brokenSeq: 71 })
  })

  it('is created for the events of an earlier version', async () => {
    const db = new Database(file)
    await migrate(kyselyOf(db), file, 0, MIGRATIONS.slice(0, 3))
    const insert = db.prepare('insert into events values (?, ?, ?, ?, ?, ?, ?)')
    db.transaction(() => {
      for (let seq = 5; seq < 11_000; seq++)
        insert.run(seq, 1000 + seq, 'task_placed', 't', 'n', null, '{"attempt":1}')
    })()
    db.prepare('insert into marks values (1, 3, 1, 11000, 1)').run()
    db.close()
    expect(() => verifyEvents(file)).toThrow('no chain of events')
    const store = createSqliteStore({ dataDir })
    await store.commit(aBatch({ events: [anEvent(11_000)], marks: { ...marks(11_001), epoch: 4 } }))
    expect(await store.reads.eventRange()).toEqual({ firstSeq: 5, lastSeq: 11_000 })
    await store.close()
    expect(verifyEvents(file)).toMatchObject({
      isIntact: true,
      events: 10_996,
      firstSeq: 5,
      lastSeq: 11_000,
      prunedSeq: 4,
    })
  })

  it.each([
    ['a file that is not there', 'nothing.db', /does not exist/],
    ['what is not a database', 'text.db', /damaged or not a database/],
  ])('of %s cannot be verified, and one line says why', (_, name, message) => {
    if (name === 'text.db') copyFileSync(import.meta.filename, join(dataDir, name))
    expect(() => verifyEvents(join(dataDir, name))).toThrow(message)
  })
})

describe('the events in the store', () => {
  it('beyond the maximum number are removed when newer ones are added', async () => {
    const store = createSqliteStore({ dataDir, retainEvents: 100 })
    await add(store, 1, 90)
    expect(await keptBy(store)).toEqual([1, 90, 90])
    await add(store, 91, 30)
    expect(await keptBy(store)).toEqual([21, 120, 100])
    await Promise.all(Array.from({ length: 50 }, (_, index) => add(store, 121 + index * 10, 10)))
    expect(await keptBy(store)).toEqual([521, 620, 100])
    await store.commit(aBatch())
    expect(await keptBy(store)).toEqual([521, 620, 100])
    expect(await store.reads.eventRange()).toEqual({ firstSeq: 521, lastSeq: 620 })
    await store.close()
  })

  it('are removed step by step after the limit was lowered', async () => {
    const before = createSqliteStore({ dataDir })
    await add(before, 1, 5000)
    await before.close()
    const store = createSqliteStore({ dataDir, retainEvents: 10 })
    const lengths: (number | undefined)[] = []
    for (let step = 1; step <= 6; step++) {
      await add(store, 5000 + step, 1)
      lengths.push((await keptBy(store))[2])
    }
    expect(lengths).toEqual([4000, 3000, 2000, 1000, 10, 10])
    await store.close()
    expect(verifyEvents(file)).toMatchObject({ isIntact: true, events: 10 })
  })

  it.each([31, 400, 3 * 365])(
    'are kept when the wall clock jumps by %i days, while a controller runs or at a start',
    async (days) => {
      const options = { dataDir, retainEventsMs: 30 * DAY_MS, retainDecisionsMs: 30 * DAY_MS }
      const at = Date.now() - days * DAY_MS
      const store = createSqliteStore(options)
      const decisions = Array.from({ length: 40 }, (_, index) => aDecision(index + 1, { at }))
      await store.commit(aBatch({ decisions }))
      await add(store, 1, 200, { at })
      await add(store, 201, 1)
      await store.close()
      const later = createSqliteStore(options)
      await later.commit(aBatch({ marks: marks(202), decisions: [aDecision(41)] }))
      expect(await keptBy(later)).toEqual([1, 201, 201])
      expect(await later.reads.decisions(ALL_DECISIONS)).toHaveLength(41)
      await later.close()
      expect(verifyEvents(file)).toMatchObject({ isIntact: true, events: 201, firstSeq: 1 })
    },
  )

  it('beyond the maximum size are removed, also after a restart, and the file keeps its size', async () => {
    const limit = 400_000
    const step = async (from: number) => {
      const store = createSqliteStore({ dataDir, retainEventBytes: limit })
      for (let seq = from; seq < from + 6000; seq += 500) {
        await add(store, seq, 500, {
          taskId: `5f0c9a52-1d3e-4b7a-9c11-${seq}`,
          nodeId: '5f0c9a52-1d3e-4b7a-9c11-0000000000aa',
        })
      }
      const [, , length] = await keptBy(store)
      await store.close()
      return { length, bytes: statSync(file).size }
    }
    const first = await step(1)
    const second = await step(6001)
    expect(first.length).toBeGreaterThan(500)
    expect(second.length).toBeGreaterThan(500)
    // Besides events, the file contains the other tables and space for the events of one more commit.
    expect(second.bytes).toBeGreaterThan(limit)
    expect(second.bytes).toBeLessThan(2 * limit)
    expect(verifyEvents(file)).toMatchObject({ isIntact: true })
  })
})
