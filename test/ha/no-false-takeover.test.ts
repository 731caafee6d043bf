/**
 * Two controllers at full load whose leader stalls for 1 s every half minute, and whose database stalls for
 * 1 s every minute: the leader keeps its lease.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, describe, it } from 'vitest'
import { DEFAULT_LEASE_MS } from '../../controller/ports/leadership.ts'
import { figure } from '../durability/controller-on.ts'
import { whyNoPostgres } from '../support/postgres-server.ts'
import { Pair } from './pair.ts'

const STEADY_SECONDS = figure('HA_STEADY_SECONDS', 16)
const OPEN_TASKS = figure('HA_OPEN_TASKS', 0)
/** Of a shorter run the fourth part, so that it has stalls of both. */
const LEADER_EVERY_MS = Math.min(30_000, STEADY_SECONDS * 250)
const DATABASE_EVERY = 2
const STALL_MS = figure('HA_STALL_MS', 1_000)
const TIMEOUT_MS = 300_000 + STEADY_SECONDS * 2_000

describe.skipIf(whyNoPostgres() !== null)('a leader that stalls', { timeout: TIMEOUT_MS }, () => {
  let pair: Pair
  beforeAll(async () => {
    pair = await Pair.start({ leaseMs: DEFAULT_LEASE_MS, openTasks: OPEN_TASKS })
  }, TIMEOUT_MS)
  afterAll(() => pair.end())

  it('keeps its lease, and so does one whose database stalls', async () => {
    await pair.standbyIsReady()
    const before = await pair.lease()
    const { member } = (await pair.leader()).controller
    pair.load.takeLongestGapMs()
    const from = performance.now()
    const acknowledged = pair.load.acknowledged
    const stalls = { leader: 0, database: 0 }
    for (let i = 1; i * LEADER_EVERY_MS <= STEADY_SECONDS * 1_000; i++) {
      await delay(from + i * LEADER_EVERY_MS - performance.now())
      // Its threads stand still too, as on a host without CPU time.
      member.signal('SIGSTOP')
      await delay(STALL_MS)
      member.signal('SIGCONT')
      stalls.leader += 1
      await pair.load.nextAcknowledgement()
      if (i % DATABASE_EVERY !== 0) continue
      await pair.server.freeze(STALL_MS)
      stalls.database += 1
      await pair.load.nextAcknowledgement()
      expect(await pair.lease(), `after ${Math.round(performance.now() - from)} ms`).toEqual(before)
    }
    const seconds = Math.round((performance.now() - from) / 1_000)
    console.log(
      `${seconds} s at full load (${pair.load.acknowledged - acknowledged} tasks acknowledged, ` +
        `${OPEN_TASKS} at the start): the leader was stopped ${stalls.leader} times for ${STALL_MS} ms, ` +
        `PostgreSQL ${stalls.database} times; longest gap between acknowledgements ` +
        `${Math.round(pair.load.takeLongestGapMs())} ms; 0 takeovers`,
    )
    expect(await pair.lease()).toEqual(before)
    await pair.load.check()
  })
})
