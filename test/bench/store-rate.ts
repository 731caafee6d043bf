/**
 * `make bench-store`: durable submissions per second of the PostgreSQL store and of SQLite, in turn, on one
 * disk. Exits with 1 below the floor.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createPostgresStore } from '../../controller/adapters/postgres/store.ts'
import { createSqliteStore } from '../../controller/adapters/sqlite/store.ts'
import type { Batch, Store } from '../../controller/ports/store.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { aBatch, anEvent, aTask } from '../support/store-builders.ts'

const FLOOR = 0.5
const ROUNDS = 3

const { values } = parseArgs({
  options: { tasks: { type: 'string', default: '5000' }, clients: { type: 'string', default: '1,16,64' } },
})
const tasks = Number(values.tasks)
const counts = values.clients.split(',').map(Number)
const folder = mkdtempSync(join(tmpdir(), 'headroom-bench-'))
chmodSync(folder, 0o755)
const server = await PostgresServer.start()
const stores = {
  sqlite: createSqliteStore({ dataDir: folder }),
  postgres: createPostgresStore({ place: server.place, markBase: join(folder, 'postgres') }),
}
const next = { sqlite: 1, postgres: 1 }
let isBelow = false
try {
  for (const store of Object.values(stores)) await store.load()
  for (const name of ['sqlite', 'postgres'] as const) await rateOf(name, 64, 500)
  for (const clients of counts) {
    const rates = { sqlite: [] as number[], postgres: [] as number[] }
    const count = clients === 1 ? Math.ceil(tasks / 4) : tasks
    for (let round = 0; round < ROUNDS; round++)
      for (const name of ['sqlite', 'postgres'] as const) rates[name].push(await rateOf(name, clients, count))
    const [sqlite, postgres] = [median(rates.sqlite), median(rates.postgres)]
    const ratio = postgres / sqlite
    if (ratio < FLOOR) isBelow = true
    console.log(
      `${String(clients).padStart(3)} clients   SQLite ${sqlite.toFixed(0)}/s, PostgreSQL ` +
        `${postgres.toFixed(0)}/s, ratio ${ratio.toFixed(2)} (floor ${FLOOR}; median of ${ROUNDS})`,
    )
  }
} finally {
  for (const store of Object.values(stores)) await store.close()
  await server.remove()
  rmSync(folder, { recursive: true })
}
process.exit(isBelow ? 1 : 0)

/** Each client waits for its submission before it sends the next; the queue joins those that wait. */
async function rateOf(name: keyof typeof stores, clients: number, count: number): Promise<number> {
  const store: Store = stores[name]
  const last = next[name] + count
  const from = performance.now()
  const client = async () => {
    while (next[name] < last) await store.commit(submission(next[name]++))
  }
  await Promise.all(Array.from({ length: clients }, client))
  return (1000 * count) / (performance.now() - from)
}

function submission(seq: number): Batch {
  return aBatch({
    tasks: [aTask({ seq })],
    events: [anEvent(seq, { taskId: `task-${seq}` })],
    submissionKeys: {
      added: [{ seq, key: `key-${seq}`, body: 'b'.repeat(64), taskId: `task-${seq}`, at: seq }],
      keptFromSeq: 1,
    },
    marks: { epoch: 1, nextTaskSeq: seq + 1, nextEventSeq: seq + 1, nextDecision: 1 },
  })
}

function median(rates: readonly number[]): number {
  return [...rates].sort((a, b) => a - b)[Math.floor(rates.length / 2)] ?? 0
}
