/** What a standby has followed is the state that a controller would load. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createFollower, type Follower } from '../../controller/adapters/postgres/follower.ts'
import { readingPool } from '../../controller/adapters/postgres/session.ts'
import { newestMark } from '../../controller/adapters/postgres/standby-mark.ts'
import { createPostgresStore } from '../../controller/adapters/postgres/store.ts'
import type { Store } from '../../controller/ports/store.ts'
import { newHistory, nextBatch, stepArb, type History, type Step } from '../support/commit-histories.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'

/** A store without a commit is loaded, not followed. */
const first = fc.array(stepArb, { minLength: 1, maxLength: 40 })
const steps = fc.array(stepArb, { maxLength: 40 })

const SUBMISSIONS: readonly Step[] = [
  { what: 'event', n: 1 },
  { what: 'submit', n: 1 },
  { what: 'submit', n: 2 },
]

describe.skipIf(whyNoPostgres() !== null)('a standby that follows the commit log', () => {
  let server: PostgresServer
  const dataDir = mkdtempSync(join(tmpdir(), 'headroom-follower-'))
  beforeAll(async () => {
    server = await PostgresServer.start({ fsync: false })
  })
  beforeEach(clear)
  afterAll(() => rmSync(dataDir, { recursive: true }))

  async function clear(): Promise<void> {
    await server.clear()
    for (const name of ['postgres.mark', 'other.standby.mark']) rmSync(join(dataDir, name), { force: true })
  }

  const cutReaders = () =>
    server.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'headroom reader'",
    )
  const extent = async () => {
    const [row] = await server.query<{ commits: string }>('select commits from headroom.history')
    return { commits: Number(row?.commits) }
  }

  const open = () => createPostgresStore({ place: server.place, markBase: join(dataDir, 'postgres') })

  /** A step has one commit. */
  async function write(store: Store, history: History, given: readonly Step[]): Promise<void> {
    for (const step of given) await store.commit(nextBatch(history, step))
  }

  async function following(lines: string[] = []): Promise<Follower> {
    const follower = createFollower(server.place, join(dataDir, 'other'), (line) => lines.push(line))
    follower.begin()
    await expect.poll(() => follower.lagMs(), { interval: 5 }).not.toBeNull()
    return follower
  }

  async function finished(follower: Follower) {
    const pool = readingPool(server.place, server.place.hosts[0]!)
    return follower.finish(pool.db).finally(() => pool.end())
  }

  it('has the state of the store after any history', async () => {
    await fc.assert(
      fc.asyncProperty(first, steps, async (before, after) => {
        await clear()
        const [store, history] = [open(), newHistory()]
        try {
          await write(store, history, before)
          await store.load()
          const follower = await following()
          await write(store, history, after)
          expect(await finished(follower)).toEqual(await store.load())
        } finally {
          await store.close()
        }
      }),
      { numRuns: Number(process.env['HA_HISTORIES'] ?? 8) },
    )
  })

  it('loads everything again when an entry is missing', async () => {
    const [store, history] = [open(), newHistory()]
    await write(store, history, [{ what: 'submit', n: 1 }])
    const lines: string[] = []
    const follower = await following(lines)
    await server.query('update headroom.history set commits = commits + 5')
    await write(store, history, [{ what: 'submit', n: 2 }])
    await expect.poll(() => lines).toEqual([expect.stringMatching(/^entry 2 of the commit log .* loads/)])
    await expect.poll(() => follower.lagMs()).not.toBeNull()
    await write(store, history, [{ what: 'end', n: 1 }])
    expect(await finished(follower)).toEqual(await store.load())
    await store.close()
  })

  it('is not used when the store went back, or is another one', async () => {
    const [store, history] = [open(), newHistory()]
    await write(store, history, [
      { what: 'submit', n: 1 },
      { what: 'submit', n: 2 },
    ])
    const [back, other] = [await following(), await following()]
    await server.query('update headroom.history set commits = commits - 1')
    expect(await finished(back)).toBeNull()
    await server.query("update headroom.history set commits = commits + 1, store_id = 'another'")
    expect(await finished(other)).toBeNull()
    await store.close()
  })

  it('loads everything again when a server answers that lacks what it has followed', async () => {
    const [store, history] = [open(), newHistory()]
    await write(store, history, SUBMISSIONS)
    const lines: string[] = []
    const follower = await following(lines)
    // The other server has another event in its place, and as many commits.
    await server.query("update headroom.event_chain set head_hash = decode(repeat('ab', 32), 'hex')")
    await server.query("update headroom.events set hash = decode(repeat('ab', 32), 'hex')")
    await cutReaders()
    await expect.poll(() => lines).toContainEqual(expect.stringMatching(/lacks commits .* everything again/))
    await follower.finish(readingPool(server.place, server.place.hosts[0]!).db)
    await store.close()
  })

  it('is refused by a standby that has followed more, until the loss is accepted', async () => {
    const [store, history] = [open(), newHistory()]
    await write(store, history, SUBMISSIONS.slice(0, 1))
    const follower = await following()
    await write(store, history, SUBMISSIONS)
    const marked = () => newestMark(join(dataDir, 'other'))
    // The last commit may not be durable at a standby of the database.
    const { commits } = await extent()
    await expect.poll(marked).toMatchObject({ is: 'there', slot: { mark: { commits: commits - 1 } } })
    follower.stop()
    await store.close()
    const outcomeAt = async (host: string, acceptLoss?: string) => {
      const markBase = join(dataDir, host)
      const accepted = acceptLoss === undefined ? {} : { acceptLoss }
      const at = createPostgresStore({ place: server.place, markBase, ...accepted })
      const outcome = await at.load().then(() => 'loaded', String)
      await at.close()
      return outcome
    }
    await server.query('update headroom.history set commits = commits - 2')
    const refusal = await outcomeAt('other')
    expect(refusal).toMatch(/went back to an earlier state: .* 1 acknowledged commits are/)
    // The former leader has seen one more; the loss of its epoch is accepted for it too.
    expect(await outcomeAt('postgres')).toMatch(/2 acknowledged commits are/)
    expect(await outcomeAt('other', /--accept-loss (\S+)\.$/.exec(refusal)?.[1])).toBe('loaded')
    expect(await outcomeAt('postgres')).toBe('loaded')
  })

  it('continues after its connection was cut', async () => {
    const [store, history] = [open(), newHistory()]
    await write(store, history, [{ what: 'submit', n: 1 }])
    const follower = await following()
    await cutReaders()
    await write(store, history, [{ what: 'end', n: 1 }])
    expect(await finished(follower)).toEqual(await store.load())
    await store.close()
  })
})
