/** Every read of the SQLite store uses an index; its schema is migrated step by step. */
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { kyselyOf } from '../../controller/adapters/sqlite/dialect.ts'
import { MIGRATIONS, migrate } from '../../controller/adapters/sqlite/migrations.ts'
import { decisionsQuery } from '../../controller/adapters/sql/decisions.ts'
import { eventsQuery } from '../../controller/adapters/sql/event-queries.ts'
import {
  finishedCountsQuery,
  finishedTasksQuery,
  openTasksQuery,
} from '../../controller/adapters/sql/queries.ts'
import { eventQuery, finishedQuery } from '../support/store-builders.ts'

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
    [
      'a later page',
      () => page({ beforeSeq: 9 }),
      /^SEARCH tasks USING INDEX tasks_final \(state=\? AND seq<\?\)$/,
    ],
    [
      'a search by name',
      () => page({ nameContains: 'x', beforeSeq: 9 }),
      /^SEARCH tasks USING INDEX tasks_final \(state=\? AND seq<\?\)$/,
    ],
    [
      'a page of an owner',
      () => page({ owner: 'a' }),
      /^SEARCH tasks USING INDEX tasks_final_by_owner \(state=\? AND owner=\?\)$/,
    ],
    [
      "an owner's later page",
      () => page({ owner: 'a', beforeSeq: 9, nameContains: 'x' }),
      /^SEARCH tasks USING INDEX tasks_final_by_owner \(state=\? AND owner=\? AND seq<\?\)$/,
    ],
    [
      'the oldest tasks of an owner',
      () => page({ isOldestFirst: true, afterSeq: 9 }),
      /^SEARCH tasks USING INDEX tasks_final \(state=\? AND seq>\?\)$/,
    ],
    [
      'a page of a node',
      () => page({ nodeId: 'n', beforeSeq: 9 }),
      /^SEARCH tasks USING INDEX tasks_final_by_node \(state=\? AND node_id=\? AND seq<\?\)$/,
    ],
    [
      'events',
      () => eventsQuery(db, eventQuery(), null),
      /^SEARCH events USING INTEGER PRIMARY KEY \(rowid>\?\)$/,
    ],
    [
      "a task's events",
      () => eventsQuery(db, eventQuery({ taskId: 't' }), ['task_placed', 'task_started']),
      /^SEARCH events USING INDEX events_of_task \(task_id=\? AND seq>\?\)$/,
    ],
    [
      "a node's events",
      () => eventsQuery(db, eventQuery({ nodeId: 'n' }), null),
      /^SEARCH events USING INDEX events_of_node \(node_id=\? AND seq>\?\)$/,
    ],
    [
      'events of a kind',
      () => eventsQuery(db, eventQuery({ isNewestFirst: true, beforeSeq: 9 }), ['config_changed']),
      /^SEARCH events USING INDEX events_of_kind \(kind=\? AND seq>\? AND seq<\?\)$/,
    ],
    [
      'events of a time range',
      () => eventsQuery(db, eventQuery({ fromAt: 1, untilAt: 2, beforeSeq: 9 }), null),
      /^SEARCH events USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)$/,
    ],
  ])('%s uses its index and sorts nothing', async (_, query, plan) => {
    expect(await planOf(query())).toMatch(plan)
  })

  it.each([
    ['decisions', {}, /^SCAN d$/],
    ['later decisions', { beforeNumber: 9 }, /^SEARCH d USING INTEGER PRIMARY KEY \(rowid<\?\)$/],
    [
      "a task's decisions",
      { taskId: 't', nodeId: 'n', kind: 'swap_out', afterNumber: 9 },
      new RegExp(
        /^SEARCH t USING PRIMARY KEY \(task_id=\? AND number>\?\); SEARCH d USING INTEGER /.source +
          /PRIMARY KEY \(rowid=\?\)$/.source,
      ),
    ],
    [
      "a node's decisions",
      { nodeId: 'n', kind: 'swap_out' },
      /^SEARCH d USING INDEX decisions_of_node \(node_id=\?\)$/,
    ],
    [
      'decisions of a kind',
      { kind: 'swap_out', beforeNumber: 9 },
      /^SEARCH d USING INDEX decisions_of_kind \(kind=\? AND number<\?\)$/,
    ],
  ] as const)('%s uses its index and sorts nothing', async (_, changes, plan) => {
    const all = { afterNumber: null, beforeNumber: null, taskId: null, nodeId: null, kind: null, limit: 50 }
    expect(await planOf(decisionsQuery(db, { ...all, ...changes }))).toMatch(plan)
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
    up: (db: Parameters<(typeof MIGRATIONS)[number]['up']>[0]) =>
      db.schema.alterTable('tasks').addColumn('extra', 'text').execute(),
  }

  it('are numbered 1, 2, 3, …', () => {
    expect(MIGRATIONS.map((migration) => migration.version)).toEqual(MIGRATIONS.map((_, index) => index + 1))
  })

  it('run once each, in order, from any version of the file', async () => {
    const { database, db } = open()
    expect(await migrate(db, 'x', 1)).toEqual({ from: 0, to: MIGRATIONS.length })
    expect(await migrate(db, 'x', 2)).toEqual({ from: MIGRATIONS.length, to: MIGRATIONS.length })
    expect(await migrate(db, 'x', 3, [...MIGRATIONS, addColumn])).toEqual({
      from: MIGRATIONS.length,
      to: MIGRATIONS.length + 1,
    })
    expect(
      database
        .prepare(`select version, applied_at from schema_version where version > ${MIGRATIONS.length}`)
        .all(),
    ).toEqual([{ version: MIGRATIONS.length + 1, applied_at: 3 }])
    await expect(migrate(db, 'x', 4)).rejects.toThrow(
      `newer Headroom (schema ${MIGRATIONS.length + 1}; this version supports up to ${MIGRATIONS.length})`,
    )
  })

  it('add missing members to old records, and leave existing members unchanged', async () => {
    const { database, db } = open()
    await migrate(db, 'x', 1, MIGRATIONS.slice(0, 1))
    const addTask = database.prepare(
      `insert into tasks (seq, id, state, name, is_final, record) values (?, ?, ?, ?, ?, ?)`,
    )
    addTask.run(
      1,
      'a',
      'running',
      'a',
      0,
      JSON.stringify({ id: 'a', placement: { startedAt: 5, heldGrowth: { mib: 7, askedAt: 6 } } }),
    )
    addTask.run(2, 'b', 'assigned', 'b', 0, JSON.stringify({ id: 'b', placement: { startedAt: null } }))
    addTask.run(3, 'c', 'pending', 'c', 0, JSON.stringify({ id: 'c', placement: null }))
    database.prepare(`insert into events values (7, 1000, 'task_placed', 'a', 'n', null, '{}')`).run()
    database.prepare(`insert into nodes values ('n', 1, '{"id":"n","device":"nvidia"}')`).run()
    await migrate(db, 'x', 2)
    const read = (table: string) =>
      database
        .prepare<[], string>(`select record from ${table} order by id`)
        .pluck()
        .all()
        .map((record) => JSON.parse(record) as unknown)
    const quiet = { stopping: null, isInDoubt: false, isNoswapUntold: false, isCalledBack: false }
    const confirmed = { bootCounter: 0, seq: 0 }
    expect(read('tasks')).toEqual([
      {
        id: 'a',
        clientWants: null,
        lastEventSeq: 7,
        placement: { startedAt: 5, heldGrowth: { mib: 7, askedAt: 6 }, confirmed, ...quiet },
      },
      {
        id: 'b',
        clientWants: null,
        lastEventSeq: null,
        placement: { startedAt: null, heldGrowth: null, confirmed: null, ...quiet },
      },
      { id: 'c', clientWants: null, lastEventSeq: null, placement: null },
    ])
    expect(read('nodes')).toEqual([
      {
        id: 'n',
        device: 'nvidia',
        signalsWanted: true,
        allowExec: true,
        leaseMs: 300_000,
        wasReset: false,
        drain: null,
      },
    ])
  })

  it('leave the file at the last successful step when one fails', async () => {
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
    expect(
      database.prepare(`select count(*) from pragma_table_info('tasks') where name = 'extra'`).pluck().get(),
    ).toBe(0)
  })
})
