/** Leadership on PostgreSQL satisfies the contract of every leadership. */
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe } from 'vitest'
import { createPostgresLeadership } from '../../controller/adapters/postgres/leadership.ts'
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
    candidate: (name) => {
      let isFrozen = false
      const leadership = createPostgresLeadership({
        ...{ name, url: `http://${name}`, version: '1', leaseMs: LEASE_MS, now: () => performance.now() },
        connect: async () => (await connect(server.place, writing(LEASE_MS))).client,
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
})
