/** The store of `headroom serve`: SQLite in the data folder, or PostgreSQL at CONTROLLER_STORE_URL. */
import { join } from 'node:path'
import type { Logger } from 'pino'
import { createPostgresStore } from '../../controller/adapters/postgres/store.ts'
import { createSqliteStore } from '../../controller/adapters/sqlite/store.ts'
import type { Store, StoreFault } from '../../controller/ports/store.ts'
import type { Settings } from '../settings/settings.ts'
import { listenWhileWaiting } from './waiting-listener.ts'

const DAY_MS = 86_400_000
const MIB_BYTES = 1_048_576

export interface DurableStore extends Store {
  /** Number of batches that wait for the current transaction. */
  queueDepth(): number
}

interface OpenOptions {
  /** The mark that the store need not reach. */
  readonly acceptLoss: string | undefined
  readonly onCommit: (ms: number, batches: number) => void
  /** The connection was lost while nothing was written. */
  readonly onLost: (fault: StoreFault, store: DurableStore) => void
}

/** The file of the mark of a PostgreSQL store is this path with `.mark`. */
export function postgresMarkBase({ dataDir }: Pick<Settings, 'dataDir'>): string {
  return join(dataDir, 'postgres')
}

/**
 * SQLite opens in the background. PostgreSQL is waited for; until it answers, health checks are answered.
 * @throws StoreFault, StartFault
 */
export async function openStore(
  settings: Settings,
  { acceptLoss, onCommit, onLost }: OpenOptions,
  log: Logger,
): Promise<DurableStore> {
  const options = {
    retainEvents: settings.eventsMaxCount,
    retainEventsMs: settings.eventsMaxDays * DAY_MS,
    retainEventBytes: settings.eventsMaxMib * MIB_BYTES,
    isStoreExpected: settings.isStoreExpected,
    ...(acceptLoss === undefined ? {} : { acceptLoss }),
    kind: settings.storeKind,
    onCommit,
    log: (line: string) => log.info(line),
  }
  if (settings.storePlace === null) return createSqliteStore({ ...options, dataDir: settings.dataDir })
  const store = createPostgresStore({
    ...options,
    place: settings.storePlace,
    markBase: postgresMarkBase(settings),
    waits: true,
    onWaiting: (why) => log.warn(`waiting for the store: ${why}`),
    onLost: (fault) => onLost(fault, store),
  })
  const listener = await listenWhileWaiting(settings)
  try {
    await store.opened
  } catch (fault) {
    await store.close()
    throw fault
  } finally {
    await listener.close()
  }
  return store
}
