/**
 * A standby at the full rate of its leader: how far it is behind, how much memory it needs, and what clients
 * read at its address while the leader changes.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, describe, it } from 'vitest'
import { askToResign } from '../../controller/adapters/postgres/leader-commands.ts'
import { figure } from '../durability/controller-on.ts'
import { whyNoPostgres } from '../support/postgres-server.ts'
import { Pair } from './pair.ts'
import { quantile, spread } from './spread.ts'

const SECONDS = figure('HA_STANDBY_SECONDS', 5)
const OPEN_TASKS = figure('HA_OPEN_TASKS', 1_000)
/** `make test-ha` promises 200 ms on an idle machine. */
const LAG_WITHIN_MS = figure('HA_STANDBY_LAG_MS', 60_000)
const MAX_MEMORY = 1.2
const FULL_RATE_CLIENTS = 64
const OWN_WRITES = figure('HA_OWN_WRITES', 200)
const WRITERS = 4
/** The leader ends as often, in turn by a handover and by SIGKILL. */
const TAKEOVERS = 4
const LEASE_MS = 2_000

describe.skipIf(whyNoPostgres() !== null)('a standby', () => {
  let pair: Pair | null = null
  afterEach(async () => {
    await pair?.end()
    pair = null
  })

  it('follows at the full rate, with about the memory of its leader', async () => {
    pair = await Pair.start({
      leaseMs: LEASE_MS,
      openTasks: OPEN_TASKS,
      load: { clients: FULL_RATE_CLIENTS },
    })
    const { server, load } = pair
    await pair.standbyIsReady()
    const [leader, standby] = [await pair.leader(), await pair.standby()]
    const lags = new Map<string, number>()
    const memory = { leader: [] as number[], standby: [] as number[] }
    const [from, before] = [performance.now(), load.acknowledged]
    while (performance.now() - from < SECONDS * 1_000) {
      await delay(250)
      const [row] = await server.query<{ seen: string; lag: string | null }>(
        'select seen::text, lag_ms as lag from headroom.controllers where name = $1',
        [standby.name],
      )
      // It tells its lag every second.
      lags.set(row?.seen ?? '', Number(row?.lag ?? NaN))
      memory.leader.push(residentMib(leader.controller.member.pid))
      memory.standby.push(residentMib(standby.controller.member.pid))
    }
    const rate = (1_000 * (load.acknowledged - before)) / (performance.now() - from)
    const sorted = [...lags.values()].sort(ascending)
    const middle = (values: number[]) => quantile(values.sort(ascending), 0.5)
    const [ofLeader, ofStandby] = [middle(memory.leader), middle(memory.standby)]
    console.log(
      `a standby at ${rate.toFixed(0)} submissions/s of ${FULL_RATE_CLIENTS} clients, ${OPEN_TASKS} tasks ` +
        `at the start: lag ${spread(sorted)}, p99 ${quantile(sorted, 0.99)} ms, ${sorted.length} times; ` +
        `memory ${ofStandby.toFixed(0)} MiB, of the leader ${ofLeader.toFixed(0)} MiB`,
    )
    expect((await pair.leader()).name).toBe(leader.name)
    expect(quantile(sorted, 0.99)).toBeLessThanOrEqual(LAG_WITHIN_MS)
    expect(ofStandby / ofLeader).toBeLessThanOrEqual(MAX_MEMORY)
  })

  it('shows clients no state that is older than their writes at the other address', async () => {
    const running = await Pair.start({ leaseMs: LEASE_MS, openTasks: 0 })
    pair = running
    const roots = running.running.map(({ root }) => `${root}/api/v1/tasks`)
    const times: number[] = []
    let pairs = 0
    /** One write at one address, one read at the other. */
    const writeAndRead = async (n: number, write: Write): Promise<string> => {
      const from = performance.now()
      const written = await answered(`${roots[n % 2]}${write.id === null ? '' : `/${write.id}`}`, write)
      const id = write.id ?? (JSON.parse(written.text) as { readonly id: string }).id
      const seq = written.headers.get('headroom-event-seq') ?? 'none'
      const read = await answered(`${roots[(n + 1) % 2]}/${id}`, {
        headers: { 'headroom-min-event-seq': seq },
      })
      expect(read.status, `pair ${n}: ${read.text}`).toBe(200)
      expect((JSON.parse(read.text) as { readonly state: string }).state, `pair ${n}`).toBe(write.state)
      times.push(performance.now() - from)
      pairs += 1
      return id
    }
    const writer = async (first: number) => {
      for (let n = first; pairs < OWN_WRITES; n += 1) {
        const id = await writeAndRead(n, {
          ...{ id: null, method: 'POST', state: 'pending', body: JSON.stringify({ vram_mib: 1_000 }) },
          headers: { 'content-type': 'application/json', 'idempotency-key': `${first} ${n}` },
        })
        await writeAndRead(n, { id, method: 'DELETE', state: 'cancelled' })
      }
    }
    const writers = Promise.all(Array.from({ length: WRITERS }, (_, i) => writer(i)))
    let isOver = false
    void writers.finally(() => (isOver = true)).catch(() => undefined)
    for (let i = 1; i <= TAKEOVERS && !isOver; i++) {
      while (!isOver && pairs < (OWN_WRITES * i) / (TAKEOVERS + 1)) await delay(5)
      await running.standbyIsReady()
      if (i % 2 === 0) (await running.leader()).controller.member.signal('SIGKILL')
      else await askToResign(running.server.place, null, LEASE_MS)
    }
    await writers
    console.log(
      `${pairs} pairs of a write and a read at the other address, ${TAKEOVERS} changes of the leader: no ` +
        `stale read; a pair takes ${spread(times.sort(ascending))}`,
    )
  })
})

interface Write extends RequestInit {
  /** Of the task; null: a new one. */
  readonly id: string | null
  /** Of the task after it. */
  readonly state: string
}

/** Repeats a request until a controller has answered it. */
async function answered(url: string, init: RequestInit) {
  for (;;) {
    const answer = await fetch(url, { ...init, signal: AbortSignal.timeout(10_000) })
      .then(async (each) => ({ status: each.status, headers: each.headers, text: await each.text() }))
      .catch(() => null)
    if (answer !== null && answer.status < 500) return answer
    await delay(20)
  }
}

function residentMib(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) / 1_024
}

function ascending(a: number, b: number): number {
  return a - b
}
