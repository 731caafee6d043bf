/**
 * Two controllers on one PostgreSQL store under load, while the one that leads is killed, stopped for longer
 * than its lease, or cut off: the other one takes over, and nothing acknowledged is lost. The fence refuses a
 * commit that the stopped leader had sent and that PostgreSQL receives after the takeover.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { figure } from '../durability/controller-on.ts'
import { whyNoPostgres } from '../support/postgres-server.ts'
import { BOTH } from '../support/tcp-proxy.ts'
import { stopAtCommit } from './late-commit.ts'
import { Pair, type LeaseRow, type Running } from './pair.ts'
import { quantile, spread } from './spread.ts'

const LOSSES = figure('HA_LEADER_LOSSES', 2)
const LEASE_MS = figure('HA_LEASE_MS', 2_000)
const OPEN_TASKS = figure('HA_OPEN_TASKS', 0)
const FIRST_WITHIN_MS = figure('HA_FIRST_201_WITHIN_MS', 60_000)
const FIRST_P95_WITHIN_MS = figure('HA_FIRST_201_P95_WITHIN_MS', 60_000)
const COMMIT_WITHIN_MS = 60_000
const TIMEOUT_MS = 300_000 + LOSSES * 60_000

describe.skipIf(whyNoPostgres() !== null)('the loss of the leader', { timeout: TIMEOUT_MS }, () => {
  let pair: Pair
  beforeAll(async () => {
    pair = await Pair.start({ leaseMs: LEASE_MS, openTasks: OPEN_TASKS })
  }, TIMEOUT_MS)
  afterAll(() => pair.end())

  /** @param lose makes the leader stop leading; resolves with what is to be done once another one leads */
  async function lost(
    what: string,
    lose: (leader: Running, i: number) => Promise<(now: LeaseRow) => Promise<void> | void>,
  ): Promise<void> {
    const { load } = pair
    const times: number[] = []
    for (let i = 0; i < LOSSES; i++) {
      await pair.standbyIsThere()
      await load.nextAcknowledgement()
      const [before, was] = [await pair.leader(), await pair.lease()]
      const goOn = await lose(before, i)
      const from = performance.now()
      await load.nextAcknowledgement()
      times.push(performance.now() - from)
      const now = await pair.lease()
      expect(now.epoch).toBeGreaterThan(was.epoch)
      expect(now.name).not.toBe(was.name)
      await goOn(now)
    }
    await load.check()
    times.sort((a, b) => a - b)
    console.log(
      `the leader was ${what} ${LOSSES} times (lease ${LEASE_MS} ms, ${OPEN_TASKS} tasks at the start): ` +
        `first 201 after ${spread(times)}; ${load.acknowledged} tasks acknowledged, none lost, none twice`,
    )
    expect(quantile(times, 0.95)).toBeLessThanOrEqual(FIRST_P95_WITHIN_MS)
    expect(quantile(times, 1)).toBeLessThanOrEqual(FIRST_WITHIN_MS)
  }

  it('loses nothing when it is killed', async () => {
    await lost('killed (SIGKILL)', ({ controller }) => {
      controller.member.signal('SIGKILL')
      return Promise.resolve(() => {})
    })
  })

  it('loses nothing when it is stopped, in a commit or elsewhere, and continues', async () => {
    await lost('stopped (SIGSTOP) and continued', async (leader, i) => {
      const { member } = leader.controller
      const { starts } = member
      const stop = () => member.signal('SIGSTOP')
      const goOn = () => {
        member.signal('SIGCONT')
        expect(member.starts).toBe(starts)
      }
      if (i % 3 === 0) {
        const expectRefused = await stopAtCommit(leader, pair, `late-commit-${i}`)
        return async (now) => {
          leader.toDatabase.heal()
          goOn()
          await expectRefused(now)
        }
      }
      // PostgreSQL receives the commit, and the leader no answer.
      if (i % 3 === 1) expect(await leader.toDatabase.onSent('commit', COMMIT_WITHIN_MS, stop)).toBe(true)
      else stop()
      return goOn
    })
    // The continued controller has ended its term and is a standby again.
    await pair.standbyIsThere()
  })

  it('loses nothing when it is cut off from PostgreSQL and its clients', async () => {
    await lost('cut off from PostgreSQL and its clients', async ({ toDatabase, fromClients }) => {
      for (const proxy of [toDatabase, fromClients]) proxy.cut(BOTH)
      return () => {
        // PostgreSQL receives what the former leader sent meanwhile.
        for (const proxy of [toDatabase, fromClients]) proxy.heal()
      }
    })
    await pair.standbyIsThere()
  })
})
