/** The PostgreSQL store satisfies the contract of every store. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe } from 'vitest'
import { createPostgresStore } from '../../controller/adapters/postgres/store.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'
import { storeContract } from '../support/store-contract.ts'

describe.skipIf(whyNoPostgres() !== null)('with a PostgreSQL server', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await PostgresServer.start({ fsync: false })
  })

  storeContract('the PostgreSQL store', () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'headroom-store-'))
    return {
      open: () =>
        createPostgresStore({ place: server.place, markBase: join(dataDir, 'postgres'), retainDecisions: 8 }),
      beginRecovery: async ({ reason, sinceWallMs }) => {
        await server.query('update headroom.history set recovery_reason = $1, recovery_since = $2', [
          reason,
          sinceWallMs,
        ])
      },
      remove: async () => {
        await server.clear()
        rmSync(dataDir, { recursive: true })
      },
    }
  })
})
