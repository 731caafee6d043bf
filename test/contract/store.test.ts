/** Both stores satisfy one contract, and give equal answers after equal batches. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { createSqliteStore, STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import type { FinalState } from '../../controller/model/task.ts'
import type { TaskState } from '../../protocol/units.ts'
import type { Batch, Store } from '../../controller/ports/store.ts'
import {
  aBatch,
  aConfig,
  aFinalTask,
  aNode,
  anEvent,
  aTask,
  eventQuery,
  finishedQuery,
} from '../support/store-builders.ts'
import { storeContract, type StorePlace } from '../support/store-contract.ts'

storeContract('the memory store', () => {
  let store = createMemoryStore({ retainDecisions: 8 })
  return {
    open: () => store,
    beginRecovery: async (recovery) => {
      store = createMemoryStore({ initial: { ...(await store.load()), recovery } })
    },
    remove: () => Promise.resolve(),
  }
})

storeContract('the SQLite store', sqlitePlace)

function sqlitePlace(): StorePlace {
  const dataDir = mkdtempSync(join(tmpdir(), 'headroom-store-'))
  return {
    open: () => createSqliteStore({ dataDir, retainDecisions: 8 }),
    beginRecovery: ({ reason, sinceWallMs }) => {
      const db = new Database(join(dataDir, STORE_FILE))
      db.prepare('update history set recovery_reason = ?, recovery_since = ?').run(reason, sinceWallMs)
      return Promise.resolve(void db.close())
    },
    remove: () => Promise.resolve(rmSync(dataDir, { recursive: true })),
  }
}

describe('the memory store', () => {
  it('commits at once and keeps the given record object', async () => {
    const store = createMemoryStore()
    const task = aTask()
    expect(store.commit(aBatch({ tasks: [task] }))).toBeUndefined()
    expect((await store.load()).openTasks[0]).toBe(task)
  })

  it('starts from a given state', async () => {
    const first = createMemoryStore()
    void first.commit(
      aBatch({ tasks: [aTask(), aFinalTask({ seq: 2 })], nodes: [aNode()], config: aConfig(2) }),
    )
    const initial = await first.load()
    const second = createMemoryStore({ initial })
    expect(await second.load()).toEqual(initial)
    void second.commit(aBatch({ tasks: [aFinalTask({ seq: 1 })] }))
    expect((await second.load()).finishedCounts.completed).toBe(2)
    expect((await first.load()).finishedCounts.completed).toBe(1)
  })

  it('drops final tasks on request, and still counts them', async () => {
    const store = createMemoryStore({ retainFinished: false })
    void store.commit(aBatch({ tasks: [aTask({ seq: 1 }), aTask({ seq: 2 })] }))
    void store.commit(aBatch({ tasks: [aFinalTask({ seq: 1 }), aFinalTask({ seq: 3, state: 'lost' })] }))
    const state = await store.load()
    expect(state.openTasks).toEqual([aTask({ seq: 2 })])
    expect(state.finishedCounts).toEqual({ completed: 1, failed: 0, cancelled: 0, lost: 1 })
    expect(await store.reads.task('task-1')).toBeNull()
  })

  it('keeps only the newest events', async () => {
    const store = createMemoryStore({ retainEvents: 3 })
    for (let seq = 1; seq <= 10; seq++) void store.commit(aBatch({ events: [anEvent(seq)] }))
    expect(await store.reads.events(eventQuery())).toEqual([8, 9, 10].map((seq) => anEvent(seq)))
    expect(await store.reads.events(eventQuery({ afterSeq: 8, limit: 1 }))).toEqual([anEvent(9)])
    expect(await store.reads.eventRange()).toEqual({ firstSeq: 8, lastSeq: 10 })
    const none = createMemoryStore({ retainEvents: 0 })
    void none.commit(aBatch({ events: [anEvent(1)] }))
    expect(await none.reads.events(eventQuery())).toEqual([])
  })
})

describe('any sequence of batches', () => {
  const TASKS = 6
  const state = fc.constantFrom<TaskState>(
    'pending',
    'assigned',
    'running',
    'unreachable',
    'completed',
    'failed',
    'cancelled',
    'lost',
  )
  const step = fc.record({
    tasks: fc.array(
      fc.tuple(
        fc.integer({ min: 1, max: TASKS }),
        state,
        fc.string({ unit: 'grapheme' }),
        fc.constantFrom(null, 'a', 'b'),
      ),
      {
        maxLength: 4,
      },
    ),
    nodes: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 2 }),
    forgotten: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 2 }),
    config: fc.option(fc.integer({ min: 1, max: 5 })),
    events: fc.integer({ min: 0, max: 3 }),
  })

  it('has equal results in both stores, before and after reopening', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 5, maxLength: 12 }),
        fc.string({ maxLength: 2 }),
        fc.integer({ min: 1, max: 4 }),
        async (steps, text, limit) => {
          const place = sqlitePlace()
          const memory = createMemoryStore()
          let sqlite = place.open()
          try {
            const batches = historyOf(steps)
            for (const batch of batches)
              await Promise.all([sqlite.commit(batch), Promise.resolve(memory.commit(batch))])
            expect(await toldBy(sqlite, text, limit)).toEqual(await toldBy(memory, text, limit))
            await sqlite.close()
            sqlite = place.open()
            expect(await toldBy(sqlite, text, limit)).toEqual(await toldBy(memory, text, limit))
          } finally {
            await sqlite.close()
            await place.remove()
          }
        },
      ),
      { numRuns: 6 },
    )
  })

  type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

  function historyOf(steps: readonly Step[]): Batch[] {
    let nextEventSeq = 1
    return steps.map(({ tasks, nodes, forgotten, config, events }) => {
      const firstSeq = nextEventSeq
      nextEventSeq += events
      return aBatch({
        tasks: tasks.map(([seq, state, name, owner]) => aTask({ seq, state, name, owner })),
        nodes: nodes.map((ordinal) => aNode({ id: `node-${ordinal}`, ordinal })),
        forgottenNodeIds: forgotten.map((ordinal) => `node-${ordinal}`),
        config: config === null ? null : aConfig(config),
        events: Array.from({ length: events }, (_, index) =>
          anEvent(firstSeq + index, { taskId: tasks[0] ? `task-${tasks[0][0]}` : null }),
        ),
        marks: { epoch: 1, nextTaskSeq: TASKS + 1, nextEventSeq, nextDecision: 1 },
      })
    })
  }

  async function toldBy(store: Store, text: string, limit: number) {
    const finals: FinalState[] = ['completed', 'lost']
    const { mark, ...state } = await store.load()
    return [
      // Only the SQLite store chains its events.
      { ...state, mark: { ...mark, chain: '' } },
      await store.reads.finishedTasks(finishedQuery({ limit })),
      await store.reads.finishedTasks(
        finishedQuery({ states: finals, owner: 'a', nameContains: text, beforeSeq: TASKS }),
      ),
      await store.reads.events(eventQuery({ afterSeq: 1, limit })),
      await store.reads.events(eventQuery({ taskId: 'task-1' })),
      await store.reads.eventRange(),
      await store.reads.configRevisions({ before: null, limit }),
      await store.reads.task('task-2'),
    ]
  }
})
