/** Leadership on PostgreSQL satisfies the contract of every leadership. */
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import {
  createPostgresLeadership,
  type ObservedLeader,
} from '../../controller/adapters/postgres/leadership.ts'
import { migrate, schemaVersion } from '../../controller/adapters/postgres/schema-steps.ts'
import { connect, COPYING, writing } from '../../controller/adapters/postgres/session.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'
import { leadershipContract } from '../support/leadership-contract.ts'

const LEASE_MS = 2_000

describe.skipIf(whyNoPostgres() !== null)('with a PostgreSQL server', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start({ fsync: false })
    const { client } = await connect(server.place, COPYING)
    await migrate(client, await schemaVersion(client), 0)
    await client.end()
  })

  leadershipContract('leadership on PostgreSQL', async () => ({
    leaseMs: LEASE_MS,
    isExact: false,
    candidate: (name, leaseMs = LEASE_MS) => {
      let isFrozen = false
      const leadership = createPostgresLeadership({
        ...{ name, url: `http://${name}`, version: '1', leaseMs, now: () => performance.now() },
        connect: async () => (await connect(server.place, writing(leaseMs))).client,
        prepare: () => Promise.resolve(),
        isAlive: () => !isFrozen,
      })
      return { leadership, freeze: () => (isFrozen = true), thaw: () => (isFrozen = false) }
    },
    pass: (ms) => delay(ms),
    remove: async () => {
      await server.query("update headroom.leader set epoch = 0, holder = '', sessions = '{}'")
      await server.query("update headroom.lease set name = '', url = '', heir = null, is_resigned = 0")
    },
  }))

  it('tells standbys at once that the leader resigns, and its URL once it answers requests', async () => {
    // A look at the lease comes every 200 ms at the latest: far more often than this lease ends.
    const leaseMs = 60_000
    const seen: (ObservedLeader | null)[] = []
    const candidate = (name: string, onLeader: (leader: ObservedLeader | null) => void = () => {}) =>
      createPostgresLeadership({
        ...{ name, url: `http://${name}`, version: '1', leaseMs, now: () => performance.now(), onLeader },
        connect: async () => (await connect(server.place, writing(leaseMs))).client,
        prepare: () => Promise.resolve(),
      })
    const [first, second] = [candidate('first'), candidate('second', (leader) => seen.push(leader))]
    const { epoch } = await first.campaign()
    const next = second.campaign()
    await expect.poll(() => seen.at(-1)).toMatchObject({ name: 'first', url: '', epoch })
    await first.serves('sealed')
    await expect.poll(() => seen.at(-1)).toMatchObject({ name: 'first', url: 'http://first', seal: 'sealed' })
    await first.resign()
    expect(await next).toMatchObject({ epoch: epoch + 1, reason: 'resigned', before: 'first' })
    expect(seen.at(-1)).toBe(null)
    await second.resign()
    await Promise.all([first.close(), second.close()])
  })

  it('keeps waiting when the connection of a standby is cut', async () => {
    const candidate = (name: string) =>
      createPostgresLeadership({
        ...{ name, url: `http://${name}`, version: '1', leaseMs: 60_000, now: () => performance.now() },
        connect: async () => (await connect(server.place, writing(LEASE_MS))).client,
        prepare: () => Promise.resolve(),
      })
    const [first, second] = [candidate('first'), candidate('second')]
    const { epoch } = await first.campaign()
    const next = second.campaign()
    const others = () =>
      server.query<{ pid: number }>(
        `select pid from pg_stat_activity, headroom.leader
         where application_name = 'headroom writer' and pid <> all(sessions)`,
      )
    await expect.poll(others).toHaveLength(1)
    const [before] = await others()
    await server.query('select pg_terminate_backend($1)', [before?.pid])
    await expect.poll(async () => (await others()).map(({ pid }) => pid === before?.pid)).toEqual([false])
    await first.resign()
    expect(await next).toMatchObject({ epoch: epoch + 1, reason: 'resigned' })
    await second.resign()
    await Promise.all([first.close(), second.close()])
  })
})
