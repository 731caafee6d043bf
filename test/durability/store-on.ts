/** The store of a controller on a folder: SQLite there, or PostgreSQL with DURABILITY_STORE=postgres. */
import { join } from 'node:path'
import { verifyPostgres } from '../../controller/adapters/postgres/commands.ts'
import { createPostgresStore } from '../../controller/adapters/postgres/store.ts'
import { createSqliteStore, STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { verifyStore, type Verdict } from '../../controller/adapters/sqlite/verify.ts'
import type { Store } from '../../controller/ports/store.ts'
import type { Environment } from '../support/live-cluster.ts'
import { PostgresServer } from '../support/postgres-server.ts'

export interface StoreOn {
  readonly name: string
  /** For the controller. */
  readonly env: Environment
  open(): Store
  verify(): Promise<Verdict>
}

export async function storeOn(dataDir: string): Promise<StoreOn> {
  if (process.env['DURABILITY_STORE'] !== 'postgres')
    return {
      ...{ name: 'SQLite', env: {} },
      open: () => createSqliteStore({ dataDir }),
      verify: () => verifyStore(join(dataDir, STORE_FILE)),
    }
  const server = await PostgresServer.start()
  const store = { place: server.place, markBase: join(dataDir, 'postgres') }
  return {
    ...{ name: 'PostgreSQL', env: { CONTROLLER_STORE_URL: server.url } },
    open: () => createPostgresStore(store),
    verify: () => verifyPostgres(store),
  }
}
