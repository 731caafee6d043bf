/**
 * A controller whose connections go through PgBouncer: session mode works, and the other modes are refused at
 * the start with the cause.
 */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { createPostgresStore, type PostgresStore } from '../../controller/adapters/postgres/store.ts'
import { readStoreUrl } from '../../controller/adapters/postgres/store-url.ts'
import { pooled, whyNoPgBouncer } from '../support/pgbouncer.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'
import { WAIT } from '../support/wait.ts'

describe.skipIf(whyNoPostgres() !== null || whyNoPgBouncer() !== null)('through PgBouncer', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start({ fsync: false })
  })

  function storeAt(url: string, name: string | null): PostgresStore {
    const place = readStoreUrl(url)
    if (place === undefined) throw new Error(`${url} is no URL of a store`)
    const candidate = { name: name ?? '', url: `http://${name ?? ''}`, mayLead: true, version: '1' }
    return createPostgresStore({
      place,
      markBase: join(mkdtempSync(join(tmpdir(), 'headroom-pooler-')), 'postgres'),
      leaseMs: 20_000,
      ...(name === null ? {} : { candidate: { ...candidate, key: { path: '', id: '', isNew: false } } }),
    })
  }

  test.each(['transaction', 'statement'] as const)('a pool in %s mode is refused', async (mode) => {
    const url = await pooled(server, mode)
    for (const name of [null, 'a']) {
      const store = storeAt(url, name)
      await expect(store.opened).rejects.toThrow(/pool_mode = session/)
      await store.close()
    }
  })

  test('a pool that passes two connections on in turn is refused too', async () => {
    const url = await pooled(server, 'transaction', ['server_round_robin = 1'])
    const clients = [1, 2].map(() => new pg.Client({ connectionString: url }))
    await Promise.all(clients.map((client) => client.connect()))
    // Two transactions at a time need two connections to the server, which stay.
    await Promise.all(clients.map((client) => client.query('begin')))
    await Promise.all(clients.map((client) => client.query('commit')))
    await Promise.all(clients.map((client) => client.end()))
    const store = storeAt(url, null)
    await expect(store.opened).rejects.toThrow(/pool_mode = session/)
    await store.close()
  })

  test('in session mode one controller leads, and another follows its commits and takes over', async () => {
    const url = await pooled(server, 'session')
    const first = storeAt(url, 'a')
    await first.opened
    await first.load()
    const second = storeAt(url, 'b')
    const next = second.opened
    await vi.waitFor(
      async () =>
        expect((await first.leaderView()).standbys).toMatchObject([{ name: 'b', lagMs: expect.any(Number) }]),
      WAIT,
    )
    await first.resign('b')
    await first.close()
    await next
    expect(second.term).toMatchObject({ epoch: 2, reason: 'resigned', before: 'a' })
    await second.close()
  })
})
