/**
 * `make bench-store`: durable submissions per second of the PostgreSQL store and of SQLite, in turn, on one
 * disk; and how much longer a commit takes on a longer way to PostgreSQL than after a pause of that length.
 * Exits with 1 below the floor, or if a commit is longer than by one round trip.
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { connect, COPYING } from '../../controller/adapters/postgres/session.ts'
import { createPostgresStore } from '../../controller/adapters/postgres/store.ts'
import { createSqliteStore } from '../../controller/adapters/sqlite/store.ts'
import type { Batch, Store } from '../../controller/ports/store.ts'
import { PostgresServer } from '../support/postgres-server.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { aBatch, anEvent, aTask } from '../support/store-builders.ts'

const FLOOR = 0.5
const ROUNDS = 3
/** A round of rates is measured in this number of pieces. */
const PARTS = 5
/** In each direction. */
const DELAY_MS = 1
/** A commit may take longer than the longer round trip by this. */
const MAX_MORE_MS = 0.5
const PROBES = 200

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
let isMissed = false
try {
  for (const store of Object.values(stores)) await store.load()
  for (const name of ['sqlite', 'postgres'] as const) await rateOf(name, 64, 500)
  for (const clients of counts) {
    const rates = { sqlite: [] as number[], postgres: [] as number[] }
    const count = Math.ceil(tasks / (clients === 1 ? 4 : 1) / PARTS)
    for (let round = 0; round < ROUNDS * PARTS; round++)
      for (const name of ['sqlite', 'postgres'] as const) rates[name].push(await rateOf(name, clients, count))
    const [sqlite, postgres] = [median(rates.sqlite), median(rates.postgres)]
    // Of neighbours: another load on the machine, or a slow disk, falls on both.
    const ratio = median(rates.sqlite.map((rate, round) => (rates.postgres[round] ?? 0) / rate))
    if (ratio < FLOOR) isMissed = true
    console.log(
      `${String(clients).padStart(3)} clients   SQLite ${sqlite.toFixed(0)}/s, PostgreSQL ` +
        `${postgres.toFixed(0)}/s, ratio ${ratio.toFixed(2)} ` +
        `(floor ${FLOOR}; median of ${ROUNDS * PARTS} pairs)`,
    )
  }
  await stores.postgres.close()
  if (!(await isCommitOneRoundTrip())) isMissed = true
} finally {
  for (const store of Object.values(stores)) await store.close()
  await server.remove()
  rmSync(folder, { recursive: true })
}
process.exit(isMissed ? 1 : 0)

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

interface Latency {
  /** Of a query without work, in ms. */
  readonly way: number[]
  readonly commit: number[]
}

/**
 * Near and far in turn, and queries and commits in turn, so that another load falls on all of them. A server
 * that has waited for the longer way is slower to start and to write, so the near one waits as long.
 */
async function isCommitOneRoundTrip(): Promise<boolean> {
  const proxy = await TcpProxy.start(server.port, DELAY_MS)
  const [near, far]: [Latency, Latency] = [
    { way: [], commit: [] },
    { way: [], commit: [] },
  ]
  for (let round = 0; round < ROUNDS; round++) {
    await probe(server.port, near, 2 * DELAY_MS)
    await probe(proxy.port, far, 0)
  }
  await proxy.end()
  const way = median(far.way) - median(near.way)
  const [before, after] = [median(near.commit), median(far.commit)]
  const more = after - before - way
  console.log(
    `a round trip that is ${way.toFixed(2)} ms longer: the median commit takes ` +
      `${(after - before).toFixed(2)} ms longer (${before.toFixed(2)} → ${after.toFixed(2)} ms, ` +
      `${far.commit.length} each), ${more.toFixed(2)} ms more than the way (at most ${MAX_MORE_MS})`,
  )
  return more <= MAX_MORE_MS
}

async function probe(port: number, { way, commit }: Latency, pauseMs: number): Promise<void> {
  const place = { ...server.place, hosts: [{ host: '127.0.0.1', port }] }
  const { client } = await connect(place, COPYING)
  const store = createPostgresStore({ place, markBase: join(folder, 'postgres') })
  await store.load()
  for (let i = 0; i < PROBES; i++) {
    if (pauseMs > 0) await delay(pauseMs)
    way.push(await timeOf(() => client.query('select 1')))
    if (pauseMs > 0) await delay(pauseMs)
    commit.push(await timeOf(() => store.commit(submission(next.postgres++))))
  }
  await store.close()
  await client.end()
}

async function timeOf(act: () => Promise<unknown> | undefined): Promise<number> {
  const from = performance.now()
  await act()
  return performance.now() - from
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

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}
