/**
 * Two controllers whose hosts are an hour ahead and an hour behind, on a database whose clock is set by an
 * hour in both directions: the time of the cluster goes on at its pace, and no leader is replaced. Tasks are
 * idle for as long as this time says.
 */
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { figure, newFolder } from '../durability/controller-on.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'
import { Pair } from './pair.ts'

const LIBRARY = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1'
const HOUR_MS = 3_600_000
const TAKEOVERS = figure('HA_CLOCK_TAKEOVERS', 2)
const LEASE_MS = figure('HA_LEASE_MS', 2_000)
/** Load, and a commit that waits for a lease, delay events. */
const TOLERANCE_MS = 10_000
const TIMEOUT_MS = 300_000 + TAKEOVERS * 60_000

function whyNoFaketime(): string | null {
  return existsSync(LIBRARY) ? null : 'libfaketime is not installed: `apt-get install libfaketime`'
}

/** Monotonic clocks stay as they are. */
const faked = (time: Readonly<Record<string, string>>) => ({
  ...{ LD_PRELOAD: LIBRARY, FAKETIME_DONT_FAKE_MONOTONIC: '1', DONT_FAKE_MONOTONIC: '1' },
  ...time,
})

interface Event {
  readonly seq: number
  readonly at: string
}

const why = whyNoPostgres() ?? whyNoFaketime()
describe.skipIf(why !== null)('controllers with clocks that differ', { timeout: TIMEOUT_MS }, () => {
  const folder = newFolder()
  // PostgreSQL reads it as a user of its own.
  chmodSync(folder, 0o755)
  const databaseClock = join(folder, 'clock')
  let pair: Pair
  beforeAll(async () => {
    setDatabaseClock('+0')
    const env = faked({ FAKETIME_TIMESTAMP_FILE: databaseClock, FAKETIME_NO_CACHE: '1' })
    const server = await PostgresServer.start({ env })
    const envOf = (name: string) => faked({ FAKETIME: name === 'a' ? '+3600' : '-3600' })
    pair = await Pair.start({ leaseMs: LEASE_MS, openTasks: 0, server, envOf })
  }, TIMEOUT_MS)
  afterAll(() => pair.end())

  /** @param offset in seconds, with its sign */
  function setDatabaseClock(offset: string): void {
    writeFileSync(databaseClock, `${offset}\n`, { mode: 0o644 })
  }

  const databaseAheadMs = async () => {
    const [row] = await pair.server.query<{ now: Date }>('select clock_timestamp() as now')
    return (row?.now.getTime() ?? 0) - Date.now()
  }

  async function events(query: string): Promise<readonly Event[]> {
    const { root } = await pair.leader()
    const answer = await fetch(`${root}/api/v1/events?limit=200&${query}`)
    return ((await answer.json()) as { readonly items: readonly Event[] }).items
  }

  /** The time of the cluster, less that of this host. */
  async function aheadMs(): Promise<number> {
    await pair.load.nextAcknowledgement()
    const [newest] = await events('order=newest')
    return Date.parse(newest?.at ?? '') - Date.now()
  }

  it('keep one time, and no step of the clock of the database replaces the leader', async () => {
    const ahead = [await aheadMs()]
    for (let i = 0; i < TAKEOVERS; i++) {
      await pair.standbyIsReady()
      const before = await pair.lease()
      for (const [offset, ms] of [
        ['+3600', HOUR_MS],
        ['-3600', -HOUR_MS],
        ['+0', 0],
      ] as const) {
        setDatabaseClock(offset)
        expect(Math.abs((await databaseAheadMs()) - ms)).toBeLessThan(TOLERANCE_MS)
        await delay(1.5 * LEASE_MS)
        expect(await pair.lease()).toEqual(before)
      }
      await pair.standbyIsReady()
      const { member } = (await pair.leader()).controller
      member.signal('SIGKILL')
      await pair.load.nextAcknowledgement()
      ahead.push(await aheadMs())
    }
    await pair.load.check()
    let last: Event = { seq: 0, at: '' }
    for (let page = await events('after=0'); page.length > 0; page = await events(`after=${last.seq}`))
      for (const event of page) {
        expect(event.at >= last.at, `${event.at} of event ${event.seq} after ${last.at}`).toBe(true)
        last = event
      }
    console.log(
      `${TAKEOVERS} takeovers between hosts an hour ahead and an hour behind, ${3 * TAKEOVERS} steps of ` +
        `the database's clock: 0 false takeovers; ${last.seq} events in ascending order; time of the ` +
        `cluster less that of the test: ${ahead.map(Math.round).join(', ')} ms`,
    )
    const [first = 0] = ahead
    for (const each of ahead) expect(Math.abs(each - first)).toBeLessThan(TOLERANCE_MS)
  })
})
