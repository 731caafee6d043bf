/** Opens the database for writing: connection, lock, check against the mark, schema, fence. */
import { randomUUID } from 'node:crypto'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { StoreFault } from '../../ports/store.ts'
import { refusal, type StorePosition } from '../sql/continuity.ts'
import { makeDirectory } from '../sql/files.ts'
import { markPath, openMarkFile, readMark, type FoundMark, type MarkFile } from '../sql/mark-file.ts'
import { enterRecovery, type Recovery } from '../sql/recovery.ts'
import type { FileMark } from '../sql/store-mark.ts'
import type { LogPart } from './commit-log-window.ts'
import { faultOf, isPassing } from './faults.ts'
import { keepKind, requireKind } from './kind.ts'
import { holdLock } from './lock.ts'
import { compareStore, readPosition } from './position.ts'
import { migrate, POSTGRES_SCHEMA_VERSION, schemaVersion } from './schema-steps.ts'
import { COPYING, connect, kyselyOn, requireOwnSessions, writing } from './session.ts'
import type { PostgresSettings } from './settings.ts'
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
}

/**
 * @param note called once for each reason why the server is waited for
 * @throws StoreFault, or an error of the server or the connection; nothing stays open then
 */
export async function openForWriting(
  settings: PostgresSettings,
  note: (line: string) => void = () => {},
): Promise<OpenedForWriting> {
  const { place, markBase, leaseMs } = settings
  makeDirectory(dirname(markBase))
  const { client, at } = await untilReachable(settings)
  // Reads and changes of the schema may take longer than a commit.
  const slow = await connect({ ...place, hosts: [at] }, COPYING)
  try {
    await requireOwnSessions(client, slow.client, randomUUID())
    await holdLock(client, settings.lockWaitMs)
    const name = describePlace(place)
    const found = readMark(markBase)
    const schema = await schemaVersion(slow.client)
    const loss = await inspect(slow.client, schema, found, settings)
    await migrate(slow.client, schema, Date.now())
    if (loss !== null)
      await kyselyOn(slow.client)
        .transaction()
        .execute((step) => enterRecovery(step, loss))
    if (settings.kind !== null) await keepKind(slow.client, settings.kind)
    const holder = randomUUID()
    await client.query('select headroom.claim($1)', [holder])
    const current = markOf(await readPosition(slow.client))
    const mark = openMarkFile(
      markBase,
      current,
      found.is === 'there' ? found.slot.generation + 1 : 1,
      Date.now,
    )
    await slow.client.query('update history set is_marked = 1 where is_marked = 0')
    const logParts = await readLogParts(slow.client)
    await slow.client.end()
    const lines = schema === 0 ? [`made the schema in ${name}`] : []
    if (schema > 0 && schema < POSTGRES_SCHEMA_VERSION)
      lines.push(`${name}: schema ${schema} → ${POSTGRES_SCHEMA_VERSION}`)
    if (loss !== null) lines.push(`${name}: the loss is accepted; the controller is in recovery`)
    return { client, at, holder, mark, storeId: current.storeId, logParts, lines }
  } catch (error) {
    await Promise.all([client.end(), slow.client.end()]).catch(() => undefined)
    throw error
  }

  async function untilReachable({ waits }: PostgresSettings): ReturnType<typeof connect> {
    let noted = ''
    for (;;) {
      try {
        return await connect(place, writing(leaseMs))
      } catch (error) {
        if (!waits || !isPassing(error)) throw faultOf(error, describePlace(place))
        const why = faultOf(error, describePlace(place)).message
        if (why !== noted) note(why)
        noted = why
        await delay(RETRY_MS)
      }
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
        `${name} is empty, and there was a store before: restore a backup (headroom restore), or, to begin ` +
          `with an empty store, remove ${markPath(markBase)}`,
      )
    if (isStoreExpected)
      throw new StoreFault(
        `there is no store in ${name}, and CONTROLLER_EXPECT_STORE says that there is one: restore a ` +
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
    `No loss is there to accept: the store reaches its mark. Start without --accept-loss ${acceptLoss}.`,
  )
}

function markOf({ storeId, epoch, eventSeq, commits, chain }: StorePosition): FileMark {
  if (storeId === null || chain === null)
    throw new Error('broken invariant: the store has no id, or no chain')
  return { storeId, epoch, eventSeq, commits, chain }
}

async function readLogParts(client: pg.ClientBase): Promise<readonly LogPart[]> {
  const { rows } = await client.query<LogPart>(
    `select max(seq) as "lastSeq", max(at) as at, sum(bytes)::bigint as bytes from commit_log
     group by seq / 1000 order by 1`,
  )
  return rows
}
