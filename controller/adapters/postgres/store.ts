/**
 * The durable store in PostgreSQL (docs/high-availability.md): one session writes, in a thread, and a pool of
 * others reads.
 */
import { extname } from 'node:path'
import type { Kysely } from 'kysely'
import type { DurationMs } from '../../../protocol/units.ts'
import type { StoreKind } from '../../model/store-kind.ts'
import type { BlobFiles } from '../../ports/blob-files.ts'
import type { LeaderView } from '../../ports/handover.ts'
import { DEFAULT_LEASE_MS, type Term } from '../../ports/leadership.ts'
import { inTerm, StoreFault, type Store, type StoredState, type StoreReads } from '../../ports/store.ts'
import { createCommitQueue } from '../sql/commit-queue.ts'
import { decisionByNumber, decisions, decodeDecision } from '../sql/decisions.ts'
import { eventRange, events } from '../sql/event-queries.ts'
import { oneLine } from '../sql/one-line.ts'
import { audits, configRevisions, finishedTasks, loadRows, taskById } from '../sql/queries.ts'
import { decodeAudit, decodeConfig, decodeEvent, decodeState, decodeTask, encodeBatch } from '../sql/rows.ts'
import type { Schema } from '../sql/schema.ts'
import { createWorkerLink } from '../sql/worker-link.ts'
import { faultOf } from './faults.ts'
import { createFollower, type Follower } from './follower.ts'
import { viewOfLeader } from './leader-view.ts'
import { countStandbys, type Succession } from './standbys.ts'
import type { LeaderSeen, PostgresAnswers, PostgresNote, PostgresRequest } from './messages.ts'
import { newProgress, tellProgress } from './shared-progress.ts'
import { readingPool } from './session.ts'
import type { Candidate, PostgresSettings } from './settings.ts'
import { describePlace, type StoreHost, type StorePlace } from './store-url.ts'
import { leaderFiles } from './uploaded-files.ts'

const LOCK_WAIT_MS = 6_000
const RETAIN_EVENTS = 1_000_000
const RETAIN_DECISIONS = 200_000
const RETAIN_DECISIONS_MS = 30 * 86_400_000

export interface PostgresStoreOptions extends Pick<PostgresSettings, 'place' | 'markBase'> {
  /** A commit that takes longer is given up, and a silent leader is replaced (default 2000). */
  readonly leaseMs?: number
  /** It waits until it leads. Omitted: another controller on the store is a fault. */
  readonly candidate?: Candidate
  /** How long to wait for a controller that is ending (default 6000). */
  readonly lockWaitMs?: number
  /** Wait for a server that cannot be reached (default false). */
  readonly waits?: boolean
  /** Called once per reason while it waits. */
  readonly onWaiting?: (why: string) => void
  /** Limits as those of SQLite. */
  readonly retainEvents?: number
  readonly retainEventBytes?: number
  readonly retainEventsMs?: number
  readonly retainDecisions?: number
  readonly retainDecisionsMs?: number
  /** The schema must exist: none is created (default false). */
  readonly isStoreExpected?: boolean
  readonly acceptLoss?: string
  readonly kind?: StoreKind
  readonly log?: (line: string) => void
  readonly onCommit?: (ms: number, batches: number) => void
  /** Called once when the connection of the writer is lost while nothing is written. */
  readonly onLost?: (fault: StoreFault) => void
  /** The leader that a standby sees; null: none. */
  readonly onLeader?: (leader: LeaderSeen | null) => void
  /** An operator asks the leader to resign, in favour of a controller; null: of any. */
  readonly onAsked?: (to: string | null) => void
}

export interface PostgresStore extends Store {
  /** Rejects with the StoreFault of the opening. */
  readonly opened: Promise<void>
  queueDepth(): number
  /** Null: it is not known, or this is not a candidate. */
  succession(): Succession | null
  /** The leader and the standbys now. @throws StoreFault */
  leaderView(): Promise<LeaderView>
  /** Time since the database accepted a commit or a beat; null: this is not a leader among several. */
  leaseAgeMs(): number | null
  /** Term of a candidate that has opened the store; otherwise null. */
  readonly term: Term | null
  /** What a leader adds to the time of its host, once it has loaded the store. */
  clockOffsetMs(): DurationMs
  /** Uploaded files of tasks; null before it has opened. */
  files(): BlobFiles | null
  /** Ends the term after the last commit. @param to the next leader; null: any other */
  resign(to: string | null): Promise<void>
  /**
   * The leader answers requests from now on: standbys forward theirs to it.
   * @param seal as LeaderSeen has it
   */
  serves(seal: string): Promise<void>
}

interface Reader {
  readonly db: Kysely<Schema>
  readonly files: BlobFiles
  end(): Promise<void>
}

/** @param holder names the term in the fence */
function readerOf(place: StorePlace, at: StoreHost, holder: string): Reader {
  const { db, end } = readingPool(place, at)
  const { files, close } = leaderFiles(place, at, holder, db)
  return { db, files, end: async () => void (await Promise.all([end(), close()])) }
}

/**
 * Opens the database at once, in the background; `load` is the first to report the outcome. Faults: all are
 * StoreFault, one line that names the store and what to do, never its password. A failed commit ends writing
 * for good: it is unknown whether it was written.
 */
export function createPostgresStore(options: PostgresStoreOptions): PostgresStore {
  const settings = settingsOf(options)
  const name = describePlace(settings.place)
  const { candidate, log = () => {} } = options
  const follower = candidate === undefined ? null : createFollower(settings.place, settings.markBase, log)
  const stopProgress = tellProgress(settings, () => follower?.lagMs() ?? null)
  // When the last commit or beat was sent that the database has accepted.
  let renewedAt = performance.now()
  let term: Term | null = null
  let counted: ReturnType<typeof countStandbys> | null = null
  let files: BlobFiles | null = null
  const hearing = {
    onFault: (fault: StoreFault) => {
      queue.fail(fault)
      options.onLost?.(fault)
    },
    onNote: (note: PostgresNote) => {
      if (note.k === 'beat') renewedAt = performance.now()
      hear(note, options, follower)
    },
  }
  const writer = createWorkerLink<PostgresRequest, PostgresAnswers, PostgresNote>(
    ...([name, workerFile(), settings, hearing] as const),
  )
  const queue = createCommitQueue(async (batches) => {
    const from = performance.now()
    await writer.ask({ op: 'commit', batches })
    renewedAt = Math.max(renewedAt, from)
    options.onCommit?.(performance.now() - from, batches.length)
  })
  const reader = open()
  const opened = handled(reader.then(() => undefined))
  const read = readThrough(reader, name)

  async function open(): Promise<Reader> {
    try {
      for (const line of await writer.open()) log(line)
      term = await writer.ask({ op: 'term' })
      const [at, holder] = [await writer.ask({ op: 'host' }), await writer.ask({ op: 'holder' })]
      const opened = readerOf(settings.place, at, holder)
      ;({ files } = opened)
      if (term !== null) counted = countStandbys(opened.db)
      return opened
    } catch (error) {
      await writer.close()
      throw error
    }
  }

  async function close(): Promise<void> {
    follower?.stop()
    const end = (await reader.catch(() => null))?.end
    counted?.stop()
    await queue.end(new StoreFault(`${name}: the store is closed`))
    await Promise.all([end?.(), writer.close()])
    stopProgress()
  }

  let closed: Promise<void> | null = null
  return {
    load: async () => {
      const state = await loaded(read, follower, log)
      return term === null ? state : inTerm(state, term, candidate?.name ?? '')
    },
    commit: (batch) => {
      try {
        return queue.add(encodeBatch(batch))
      } catch (cause) {
        const fault = new StoreFault(`a record cannot be stored: ${oneLine(String(cause))}`, { cause })
        queue.fail(fault)
        return Promise.reject(fault)
      }
    },
    opened,
    get term() {
      return term
    },
    clockOffsetMs: () => follower?.clockOffsetMs ?? 0,
    files: () => files,
    serves: async (seal) => {
      await writer.ask({ op: 'serves', seal })
    },
    resign: async (to) => {
      await queue.end(new StoreFault(`${name}: this controller has resigned`))
      await writer.ask({ op: 'resign', to })
    },
    queueDepth: () => queue.depth(),
    succession: () => counted?.current() ?? null,
    leaderView: () => read(viewOfLeader),
    leaseAgeMs: () => (term === null ? null : performance.now() - renewedAt),
    keepsDecisions: true,
    reads: readsOf(read),
    close: () => (closed ??= close()),
  }
}

function hear(note: PostgresNote, options: PostgresStoreOptions, follower: Follower | null): void {
  if (note.k === 'waiting') options.onWaiting?.(note.why)
  if (note.k === 'asked') options.onAsked?.(note.to)
  if (note.k !== 'leader') return
  // Its own name: it was the leader before it was started again.
  if (note.leader !== null && note.leader.name !== options.candidate?.name) follower?.begin()
  options.onLeader?.(note.leader)
}

/** Callers get the fault; without a caller it must not end the process. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

type Read = <T>(query: (db: Kysely<Schema>) => Promise<T>) => Promise<T>

function readThrough(reader: Promise<Reader>, store: string): Read {
  return async (query) => {
    const { db } = await reader
    try {
      return await query(db)
    } catch (error) {
      throw faultOf(error, store)
    }
  }
}

async function loaded(
  read: Read,
  follower: Follower | null,
  log: (line: string) => void,
): Promise<StoredState> {
  if (follower === null) return decodeState(await read(loadRows))
  const from = performance.now()
  // Following only saves time. Without it, the whole state is loaded.
  const followed = await read((db) => follower.finish(db)).catch(() => null)
  const state = followed ?? decodeState(await read(loadRows))
  const how = followed === null ? 'loaded the store' : 'read the rest of the commit log'
  log(`${how} in ${Math.round(performance.now() - from)} ms`)
  return state
}

function settingsOf(options: PostgresStoreOptions): PostgresSettings {
  const { retainEvents = RETAIN_EVENTS, retainEventBytes = null, retainEventsMs = null } = options
  const { retainDecisions = RETAIN_DECISIONS, retainDecisionsMs = RETAIN_DECISIONS_MS } = options
  return {
    place: options.place,
    markBase: options.markBase,
    leaseMs: options.leaseMs ?? DEFAULT_LEASE_MS,
    candidate: options.candidate ?? null,
    progress: options.candidate === undefined ? null : newProgress(),
    lockWaitMs: options.lockWaitMs ?? LOCK_WAIT_MS,
    waits: options.waits ?? false,
    retention: { maxEvents: retainEvents, maxBytes: retainEventBytes, maxAgeMs: retainEventsMs },
    decisionRetention: { maxDecisions: retainDecisions, maxAgeMs: retainDecisionsMs },
    isStoreExpected: options.isStoreExpected ?? false,
    acceptLoss: options.acceptLoss ?? null,
    kind: options.kind ?? null,
  }
}

/** Sources run as .ts, an installed package as .js. */
function workerFile(): URL {
  return new URL(`./writer-worker${extname(import.meta.url)}`, import.meta.url)
}

function readsOf(read: Read): StoreReads {
  return {
    task: async (id) => {
      const record = await read((db) => taskById(db, id))
      return record === null ? null : decodeTask(record)
    },
    finishedTasks: async (query) => (await read((db) => finishedTasks(db, query))).map(decodeTask),
    events: async (query) => (await read((db) => events(db, query))).map(decodeEvent),
    eventRange: () => read(eventRange),
    decision: async (number) => {
      const record = await read((db) => decisionByNumber(db, number))
      return record === null ? null : decodeDecision(record)
    },
    decisions: async (query) => (await read((db) => decisions(db, query))).map(decodeDecision),
    audits: async (query) => (await read((db) => audits(db, query))).map(decodeAudit),
    configRevisions: async (query) => (await read((db) => configRevisions(db, query))).map(decodeConfig),
  }
}
