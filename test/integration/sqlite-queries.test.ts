/** Every read of the SQLite store follows an index, and the file does not grow with the events that ever were. */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { kyselyOf } from '../../controller/adapters/sqlite/dialect.ts'
import { MIGRATIONS, migrate } from '../../controller/adapters/sqlite/migrations.ts'
import { eventsQuery, finishedCountsQuery, finishedTasksQuery, openTasksQuery } from '../../controller/adapters/sqlite/queries.ts'
import { createSqliteStore, STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { aBatch, anEvent, eventQuery, finishedQuery } from '../support/store-builders.ts'

describe('the plan of', () => {
  const database = new Database(':memory:')
  const db = kyselyOf(database)
  const planOf = async (query: { compile(): { sql: string; parameters: readonly unknown[] } }) => {
    await migrate(db, ':memory:', 0)
    const { sql, parameters } = query.compile()
    const steps = database.prepare<unknown[], { detail: string }>(`explain query plan ${sql}`).all(parameters)
    return steps.map((step) => step.detail).join('; ')
  }

  it.each([
    ['open tasks', () => openTasksQuery(db), /^SCAN tasks USING INDEX tasks_open$/],
    ['counts of final tasks', () => finishedCountsQuery(db), /^SCAN tasks USING COVERING INDEX tasks_final$/],
    ['a page of final tasks', () => page({}), /^SEARCH tasks USING INDEX tasks_final \(state=\?\)$/],
    ['a later page', () => page({ beforeSeq: 9 }), /^SEARCH tasks USING INDEX tasks_final \(state=\? AND seq<\?\)$/],
    ['a search by name', () => page({ nameContains: 'x', beforeSeq: 9 }), /^SEARCH tasks USING INDEX tasks_final \(state=\? AND seq<\?\)$/],
    ['a page of an owner', () => page({ owner: 'a' }), /^SEARCH tasks USING INDEX tasks_final_by_owner \(state=\? AND owner=\?\)$/],
    [
      "an owner's later page",
      () => page({ owner: 'a', beforeSeq: 9, nameContains: 'x' }),
      /^SEARCH tasks USING INDEX tasks_final_by_owner \(state=\? AND owner=\? AND seq<\?\)$/,
    ],
    ['events', () => eventsQuery(db, eventQuery()), /^SEARCH events USING INTEGER PRIMARY KEY \(rowid>\?\)$/],
    [
      "a task's events",
      () => eventsQuery(db, eventQuery({ taskId: 't' })),
      /^SEARCH events USING INDEX events_of_task \(task_id=\? AND seq>\?\)$/,
    ],
    [
      "a node's events",
      () => eventsQuery(db, eventQuery({ nodeId: 'n' })),
      /^SEARCH events USING INDEX events_of_node \(node_id=\? AND seq>\?\)$/,
    ],
  ])('%s follows its index and sorts nothing', async (_, query, plan) => {
    expect(await planOf(query())).toMatch(plan)
  })

  function page(changes: Parameters<typeof finishedQuery>[0]) {
    return finishedTasksQuery(db, 'completed', finishedQuery(changes))
  }
})

describe('migrations', () => {
  const open = () => {
    const database = new Database(':memory:')
    return { database, db: kyselyOf(database) }
  }
  const addColumn = {
    version: MIGRATIONS.length + 1,
    name: 'one more column',
    up: (db: Parameters<(typeof MIGRATIONS)[number]['up']>[0]) => db.schema.alterTable('tasks').addColumn('extra', 'text').execute(),
  }

  it('are numbered 1, 2, 3, …', () => {
    expect(MIGRATIONS.map((migration) => migration.version)).toEqual(MIGRATIONS.map((_, index) => index + 1))
  })

  it('run once each, in order, from wherever the file stands', async () => {
    const { database, db } = open()
    expect(await migrate(db, 'x', 1)).toEqual({ from: 0, to: MIGRATIONS.length })
    expect(await migrate(db, 'x', 2)).toEqual({ from: MIGRATIONS.length, to: MIGRATIONS.length })
    expect(await migrate(db, 'x', 3, [...MIGRATIONS, addColumn])).toEqual({ from: MIGRATIONS.length, to: MIGRATIONS.length + 1 })
    expect(database.prepare(`select version, applied_at from schema_version where version > ${MIGRATIONS.length}`).all()).toEqual([
      { version: MIGRATIONS.length + 1, applied_at: 3 },
    ])
    await expect(migrate(db, 'x', 4)).rejects.toThrow(
      `newer Headroom (schema ${MIGRATIONS.length + 1}, this one knows up to ${MIGRATIONS.length})`,
    )
  })

  it('give records of before what later ones have, and leave alone what they have', async () => {
    const { database, db } = open()
    await migrate(db, 'x', 1, MIGRATIONS.slice(0, 1))
    const addTask = database.prepare(`insert into tasks (seq, id, state, name, is_final, record) values (?, ?, ?, ?, ?, ?)`)
    addTask.run(1, 'a', 'running', 'a', 0, JSON.stringify({ id: 'a', placement: { startedAt: 5, heldGrowth: { mib: 7, askedAt: 6 } } }))
    addTask.run(2, 'b', 'assigned', 'b', 0, JSON.stringify({ id: 'b', placement: { startedAt: null } }))
    addTask.run(3, 'c', 'pending', 'c', 0, JSON.stringify({ id: 'c', placement: null }))
    database.prepare(`insert into nodes values ('n', 1, '{"id":"n","device":"nvidia"}')`).run()
    await migrate(db, 'x', 2)
    const read = (table: string) =>
      database
        .prepare<[], string>(`select record from ${table} order by id`)
        .pluck()
        .all()
        .map((record) => JSON.parse(record) as unknown)
    const quiet = { stopping: null, isInDoubt: false, isNoswapUntold: false }
    const confirmed = { bootCounter: 0, seq: 0 }
    expect(read('tasks')).toEqual([
      { id: 'a', clientWants: null, placement: { startedAt: 5, heldGrowth: { mib: 7, askedAt: 6 }, confirmed, ...quiet } },
      { id: 'b', clientWants: null, placement: { startedAt: null, heldGrowth: null, confirmed: null, ...quiet } },
      { id: 'c', clientWants: null, placement: null },
    ])
    expect(read('nodes')).toEqual([{ id: 'n', device: 'nvidia', signalsWanted: true, allowExec: true, leaseMs: 300_000, wasReset: false }])
  })

  it('leave the file at the last good step when one fails', async () => {
    const { database, db } = open()
    const failing = {
      ...addColumn,
      up: async (step: Parameters<typeof addColumn.up>[0]) => {
        await addColumn.up(step)
        throw new Error('half-way')
      },
    }
    await expect(migrate(db, 'x', 1, [...MIGRATIONS, failing])).rejects.toThrow('half-way')
    expect(database.prepare(`select max(version) from schema_version`).pluck().get()).toBe(MIGRATIONS.length)
    expect(database.prepare(`select count(*) from pragma_table_info('tasks') where name = 'extra'`).pluck().get()).toBe(0)
  })
})

describe('events', () => {
  let dataDir: string
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'headroom-sqlite-'))
  })
  afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

  const add = async (store: ReturnType<typeof createSqliteStore>, first: number, count: number) => {
    await store.commit(aBatch({ events: Array.from({ length: count }, (_, index) => anEvent(first + index)) }))
  }
  const keptBy = async (store: ReturnType<typeof createSqliteStore>) => {
    const kept = await store.reads.events(eventQuery({ limit: 100_000 }))
    return [kept[0]?.seq, kept.at(-1)?.seq, kept.length]
  }

  it('past the limit are gone as soon as newer ones are there', async () => {
    const store = createSqliteStore({ dataDir, retainEvents: 100 })
    await add(store, 1, 90)
    expect(await keptBy(store)).toEqual([1, 90, 90])
    await add(store, 91, 30)
    expect(await keptBy(store)).toEqual([21, 120, 100])
    await Promise.all(Array.from({ length: 50 }, (_, index) => add(store, 121 + index * 10, 10)))
    expect(await keptBy(store)).toEqual([521, 620, 100])
    await store.commit(aBatch())
    expect(await keptBy(store)).toEqual([521, 620, 100])
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
  })

  it('keep the file at one size', async () => {
    const store = createSqliteStore({ dataDir, retainEvents: 500 })
    for (let step = 0; step < 12; step++) await add(store, 1 + step * 500, 500)
    await store.close()
    expect(statSync(join(dataDir, STORE_FILE)).size).toBeLessThan(400_000)
  })
})
