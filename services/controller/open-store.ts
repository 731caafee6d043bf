/** The store of `headroom serve`: SQLite in the data folder, or PostgreSQL at CONTROLLER_STORE_URL. */
import { join } from 'node:path'
import type { Logger } from 'pino'
import { createPostgresStore, type PostgresStoreOptions } from '../../controller/adapters/postgres/store.ts'
import type { LeaderSeen } from '../../controller/adapters/postgres/messages.ts'
import type { Succession } from '../../controller/adapters/postgres/standbys.ts'
import type { StorePlace } from '../../controller/adapters/postgres/store-url.ts'
import { createSqliteStore } from '../../controller/adapters/sqlite/store.ts'
import type { BlobFiles } from '../../controller/ports/blob-files.ts'
import type { LeaderView } from '../../controller/ports/handover.ts'
import type { Term } from '../../controller/ports/leadership.ts'
import type { Sealer } from '../../controller/ports/sealer.ts'
import type { Store, StoreFault } from '../../controller/ports/store.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { Settings } from '../settings/settings.ts'
import { packageVersion } from '../package-info.ts'
import type { SecretsKey } from './secrets-key.ts'
import { rehearseStart } from './rehearsal.ts'
import { createStandbyState } from './standby-state.ts'
import { listenWhileWaiting } from './waiting-listener.ts'

const DAY_MS = 86_400_000
const MIB_BYTES = 1_048_576

export interface DurableStore extends Store {
  /** Number of batches that wait for the current transaction. */
  queueDepth(): number
  /** Succession of the leader among several controllers; null or omitted: unknown, or a single controller. */
  succession?(): Succession | null
  /** The leader and the standbys; omitted: this controller is alone. @throws StoreFault */
  leaderView?(): Promise<LeaderView>
  /** Since the database accepted a commit or a beat of this leader; null or omitted: it has no lease. */
  leaseAgeMs?(): number | null
  /** Term of a controller among several; null or omitted: a single controller. */
  readonly term?: Term | null
  /** What a leader adds to the time of its host, once it has loaded the store; omitted: nothing. */
  clockOffsetMs?(): DurationMs
  /** Uploaded files of tasks; null or omitted: they are not in the store. */
  files?(): BlobFiles | null
  /** Ends the term after the last commit. @param to the next leader; null: any other */
  resign?(to: string | null): Promise<void>
  /** The API is ready: frees the port, at which requests were held, and keeps them until `serves`. */
  endWaiting?(): Promise<void>
  /** The API listens: requests that were held are answered, and standbys forward theirs. */
  serves?(): Promise<void>
}

interface OpenOptions {
  /** The mark that the store need not reach. */
  readonly acceptLoss: string | undefined
  /** The same at all controllers of a store, unless it replaces that of the others. */
  readonly key: Pick<SecretsKey, 'path' | 'id' | 'sealer'> & { readonly isNew: boolean }
  readonly onCommit: (ms: number, batches: number) => void
  /** The connection was lost while nothing was written. */
  readonly onLost: (fault: StoreFault, store: Store) => void
  /** An operator asks this leader to resign, in favour of a controller; null: of any. */
  readonly onAsked: (asked: { readonly to: string | null }) => void
}

/** The file of the mark of a PostgreSQL store is this path with `.mark`. */
export function postgresMarkBase({ dataDir }: Pick<Settings, 'dataDir'>): string {
  return join(dataDir, 'postgres')
}

/**
 * SQLite opens in the background. PostgreSQL is waited for, and until this controller leads; health checks
 * are answered meanwhile.
 * @throws StoreFault, StartFault
 */
export async function openStore(
  settings: Settings,
  { acceptLoss, key, onCommit, onLost, onAsked }: OpenOptions,
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
  return openAmongControllers(settings, settings.storePlace, { ...options, key, onLost, onAsked }, log)
}

type SharedOptions = Omit<PostgresStoreOptions, 'place' | 'markBase' | 'onLost' | 'onAsked'>

async function openAmongControllers(
  settings: Settings,
  place: StorePlace,
  options: SharedOptions & Pick<OpenOptions, 'onLost' | 'onAsked' | 'key'>,
  log: Logger,
): Promise<DurableStore> {
  const { leaseMs, name, url, mayLead } = settings.among
  const candidate = { name, url, mayLead }
  const { path, id, isNew, sealer } = options.key
  const standby = createStandbyState(candidate)
  const store = createPostgresStore({
    ...options,
    place,
    markBase: postgresMarkBase(settings),
    leaseMs,
    candidate: { ...candidate, version: packageVersion(), key: { path, id: id ?? '', isNew } },
    waits: true,
    onWaiting: (why) => {
      standby.waits()
      log.warn(`waiting for the store: ${why}`)
    },
    onLeader: (leader) => {
      standby.sees(leader === null ? null : trusted(leader, sealer, log))
      if (standby.leader !== null) rehearse(log)
      if (leader !== null) log.info({ leader: leader.name, epoch: leader.epoch }, 'standby')
    },
    onLost: (fault) => options.onLost(fault, store),
    onAsked: (to) => options.onAsked({ to }),
  })
  const { serves, close } = store
  const listener = await listenWhileWaiting(settings, standby, (line) => log.warn(line))
  // Nothing has to be finished yet.
  const end = (): void => process.exit(0)
  for (const signal of SIGNALS) process.once(signal, end)
  try {
    await store.opened
  } catch (fault) {
    await Promise.all([listener.close(), store.close()])
    throw fault
  } finally {
    for (const signal of SIGNALS) process.off(signal, end)
  }
  // A leader that was disconnected is known until now; requests wait for this one.
  standby.sees(null)
  if (store.term !== null) log.info(store.term, 'this controller leads')
  return Object.assign(store, {
    endWaiting: () => listener.close(),
    serves: async () => {
      standby.leads()
      await serves(sealer.seal(url, contextOf({ name, epoch: store.term?.epoch ?? 0 })))
    },
    close: async () => {
      await Promise.all([listener.close(), close()])
    },
  })
}

/**
 * Requests are forwarded with the credentials of their callers: only to a URL that a controller with the same
 * key has sealed in this term. The database alone does not prove it.
 */
function trusted(leader: LeaderSeen, sealer: Sealer, log: Logger): LeaderSeen {
  if (leader.url === '' || sealer.open(leader.seal, contextOf(leader)) === leader.url) return leader
  log.error(
    { leader: leader.name, url: leader.url, epoch: leader.epoch },
    'requests are not forwarded to this leader: its URL is not sealed with the key of the controllers',
  )
  return { ...leader, url: '' }
}

function contextOf({ name, epoch }: Pick<LeaderSeen, 'name' | 'epoch'>): string {
  return JSON.stringify(['leader', name, epoch])
}

let rehearsal: Promise<void> | null = null

/** Once per process. */
function rehearse(log: Logger): void {
  rehearsal ??= rehearseStart().catch((error: unknown) =>
    log.warn({ err: error }, 'the rehearsal of a takeover failed: the first takeover will take longer'),
  )
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const
