/** Opens the database for writing: connection, lock, check against the mark, schema, fence. */
import { randomUUID } from 'node:crypto'
import { uptime } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Term } from '../../ports/leadership.ts'
import { StoreFault } from '../../ports/store.ts'
import { refusal } from '../sql/continuity.ts'
import { makeDirectory } from '../sql/files.ts'
import { markPath, openMarkFile, type FoundMark, type MarkFile } from '../sql/mark-file.ts'
import { enterRecovery, type Recovery } from '../sql/recovery.ts'
import type { LogPart } from './commit-log-window.ts'
import { faultOf, isPassing } from './faults.ts'
import { keepKind, requireKind } from './kind.ts'
import { createPostgresLeadership, type PostgresLeadership } from './leadership.ts'
import { holdLock } from './lock.ts'
import type { PostgresNote } from './messages.ts'
import { keepKey, requireSameKey } from './same-key.ts'
import { compareStore, markOf, readPosition } from './position.ts'
import { migrate, POSTGRES_SCHEMA_VERSION, schemaVersion } from './schema-steps.ts'
import { COPYING, connect, kyselyOn, requireOwnSessions, writing } from './session.ts'
import type { Candidate, PostgresSettings } from './settings.ts'
import { aliveIn, lagIn } from './shared-progress.ts'
import { newestMark } from './standby-mark.ts'
import { describePlace, type StoreHost } from './store-url.ts'

const RETRY_MS = 500

export interface OpenedForWriting {
  readonly client: pg.Client
  readonly at: StoreHost
  /** Names this opening in the fence. */
  readonly holder: string
  readonly mark: MarkFile
  readonly storeId: string
  readonly logParts: readonly LogPart[]
  readonly lines: readonly string[]
  /** Null: it is not a candidate. */
  readonly leadership: PostgresLeadership | null
  readonly term: Term | null
}

type Noted = (note: PostgresNote) => void

/**
 * Waits for the server, and as a candidate until this controller leads.
 * @param note called once for each reason why the server is waited for, and for each leader
 * @throws StoreFault, or an error of the server or the connection; nothing stays open then
 */
export async function openForWriting(
  settings: PostgresSettings,
  note: Noted = () => {},
): Promise<OpenedForWriting> {
  makeDirectory(dirname(settings.markBase))
  if (settings.candidate !== null) return openAsLeader(settings, settings.candidate, note)
  const { client, at } = await untilReachable(settings, note)
  try {
    await requireSessions(client, at, settings)
    await holdLock(client, settings.lockWaitMs)
    const prepared = await prepare(at, settings)
    const holder = randomUUID()
    await client.query('select headroom.claim($1)', [holder])
    return { client, at, holder, ...(await prepared.begin()), leadership: null, term: null }
  } catch (error) {
    await client.end().catch(() => undefined)
    throw error
  }
}

async function openAsLeader(
  settings: PostgresSettings,
  candidate: Candidate,
  note: Noted,
): Promise<OpenedForWriting> {
  const opening: { client?: pg.Client; at?: StoreHost; prepared?: Prepared } = {}
  const leadership = createPostgresLeadership({
    ...candidate,
    leaseMs: settings.leaseMs,
    connect: async () => {
      Object.assign(opening, await untilReachable(settings, note))
      const { client, at } = opening as OpenedForWriting
      await requireSessions(client, at, settings)
      try {
        await requireSameKey(client, describePlace(settings.place), candidate.key)
        return client
      } catch (error) {
        await client.end().catch(() => undefined)
        throw error
      }
    },
    prepare: async () => {
      opening.prepared = await prepare((opening as OpenedForWriting).at, settings)
    },
    now: bootMs,
    ...(settings.progress === null ? {} : progressOf(settings.progress, settings.leaseMs)),
    onBeat: () => note({ k: 'beat' }),
    onLeader: (leader) => note({ k: 'leader', leader }),
    onAsked: (to) => note({ k: 'asked', to }),
  })
  const term = await leadership.campaign()
  const { client, at, prepared } = opening
  if (client === undefined || at === undefined || prepared === undefined)
    throw new Error('broken invariant: a term began without a session')
  try {
    return { client, at, holder: leadership.holder, ...(await prepared.begin()), leadership, term }
  } catch (error) {
    await leadership.close()
    throw error
  }
}

/** Whole milliseconds since the host started, its sleep included (CLOCK_BOOTTIME). */
function bootMs(): number {
  return Math.round(uptime() * 1_000)
}

function progressOf(shared: SharedArrayBuffer, leaseMs: number) {
  return { isAlive: aliveIn(shared, leaseMs), lagMs: () => lagIn(shared) }
}

async function requireSessions(client: pg.Client, at: StoreHost, { place }: PostgresSettings): Promise<void> {
  try {
    const other = await connect({ ...place, hosts: [at] }, COPYING)
    await requireOwnSessions(client, other.client).finally(() => other.client.end())
  } catch (error) {
    await client.end().catch(() => undefined)
    throw error
  }
}

interface Prepared {
  /** Opens the mark, once the fence is taken. */
  begin(): Promise<Pick<OpenedForWriting, 'mark' | 'storeId' | 'logParts' | 'lines'>>
}

/** Checks the store against the mark and migrates it, while the lock is held. */
async function prepare(at: StoreHost, settings: PostgresSettings): Promise<Prepared> {
  const { place, markBase } = settings
  const name = describePlace(place)
  // Reads and changes of the schema may take longer than a commit.
  const { client: slow } = await connect({ ...place, hosts: [at] }, COPYING)
  try {
    const found = newestMark(markBase)
    const schema = await schemaVersion(slow)
    const loss = await inspect(slow, schema, found, settings)
    await migrate(slow, schema, Date.now())
    if (loss !== null)
      await kyselyOn(slow)
        .transaction()
        .execute((step) => enterRecovery(step, loss))
    if (settings.kind !== null) await keepKind(slow, settings.kind)
    if (settings.candidate !== null) {
      await requireSameKey(slow, name, settings.candidate.key)
      await keepKey(slow, settings.candidate.key)
    }
    const generation = found.is === 'there' ? found.slot.generation + 1 : 1
    return { begin: () => begin(slow, markBase, generation, linesOf(name, schema, loss)) }
  } catch (error) {
    await slow.end().catch(() => undefined)
    throw error
  }
}

async function begin(
  slow: pg.Client,
  markBase: string,
  generation: number,
  lines: readonly string[],
): ReturnType<Prepared['begin']> {
  try {
    const current = markOf(await readPosition(slow))
    const mark = openMarkFile(markBase, current, generation, Date.now)
    await slow.query('update history set is_marked = 1 where is_marked = 0')
    return { mark, storeId: current.storeId, logParts: await readLogParts(slow), lines }
  } finally {
    await slow.end().catch(() => undefined)
  }
}

function linesOf(name: string, schema: number, loss: Recovery | null): readonly string[] {
  const lines = schema === 0 ? [`created the schema in ${name}`] : []
  if (schema > 0 && schema < POSTGRES_SCHEMA_VERSION)
    lines.push(`${name}: schema ${schema} → ${POSTGRES_SCHEMA_VERSION}`)
  if (loss !== null) lines.push(`${name}: the loss is accepted; the controller is in recovery`)
  return lines
}

async function untilReachable(
  { waits, place, leaseMs }: PostgresSettings,
  note: Noted,
): ReturnType<typeof connect> {
  let noted = ''
  for (;;) {
    try {
      return await connect(place, writing(leaseMs))
    } catch (error) {
      if (!waits || !isPassing(error)) throw faultOf(error, describePlace(place))
      const why = faultOf(error, describePlace(place)).message
      if (why !== noted) note({ k: 'waiting', why })
      noted = why
      await delay(RETRY_MS)
    }
  }
}

/**
 * Only reads.
 * @returns the loss that an operator accepted; null: none
 * @throws StoreFault if the store is missing, of another kind, or lacks what the mark has
 */
async function inspect(
  client: pg.ClientBase,
  schema: number,
  found: FoundMark,
  { place, markBase, isStoreExpected, acceptLoss, kind }: PostgresSettings,
): Promise<Recovery | null> {
  const name = describePlace(place)
  if (schema === 0) {
    if (found.is !== 'absent')
      throw new StoreFault(
        `${name} is empty, but contained a store before: restore a backup (headroom restore), or, to begin ` +
          `with an empty store, remove ${markPath(markBase)}`,
      )
    if (isStoreExpected)
      throw new StoreFault(
        `there is no store in ${name}, but CONTROLLER_EXPECT_STORE is set: restore a ` +
          'backup (headroom restore), name its database, or, to begin with an empty store, unset it',
      )
    return null
  }
  if (kind !== null) await requireKind(client, name, kind)
  const position = await readPosition(client)
  const continuity = await compareStore(client, name, markBase, position, found)
  if (continuity.is === 'broken') {
    if (acceptLoss !== continuity.mark) throw new StoreFault(refusal(continuity, acceptLoss))
    return {
      ...{ reason: 'loss_accepted', sinceWallMs: Date.now(), supersedes: continuity.mark },
      highestEpoch: continuity.epoch,
    }
  }
  if (acceptLoss === null) return null
  throw new StoreFault(
    `There is no loss to accept: the store matches its mark. Start without --accept-loss ${acceptLoss}.`,
  )
}

async function readLogParts(client: pg.ClientBase): Promise<readonly LogPart[]> {
  const { rows } = await client.query<LogPart>(
    `select max(seq) as "lastSeq", max(at) as at, sum(bytes)::bigint as bytes from commit_log
     group by seq / 1000 order by 1`,
  )
  return rows
}
