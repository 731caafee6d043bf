/**
 * The durable store in PostgreSQL (docs/high-availability.md): one session writes, in a thread, and a pool of
 * others reads.
 */
import { extname } from 'node:path'
import type { Kysely } from 'kysely'
import type { StoreKind } from '../../model/store-kind.ts'
import { StoreFault, type Store, type StoreReads } from '../../ports/store.ts'
import { createCommitQueue } from '../sql/commit-queue.ts'
import { decisionByNumber, decisions, decodeDecision } from '../sql/decisions.ts'
import { eventRange, events } from '../sql/event-queries.ts'
import { oneLine } from '../sql/one-line.ts'
import { audits, configRevisions, finishedTasks, loadRows, taskById } from '../sql/queries.ts'
import { decodeAudit, decodeConfig, decodeEvent, decodeState, decodeTask, encodeBatch } from '../sql/rows.ts'
import type { Schema } from '../sql/schema.ts'
import { createWorkerLink } from '../sql/worker-link.ts'
import { faultOf } from './faults.ts'
import type { PostgresAnswers, PostgresRequest } from './messages.ts'
import { readingPool } from './session.ts'
import type { PostgresSettings } from './settings.ts'
import { describePlace } from './store-url.ts'

const LEASE_MS = 2_000
const LOCK_WAIT_MS = 6_000
const RETAIN_EVENTS = 1_000_000
const RETAIN_DECISIONS = 200_000
const RETAIN_DECISIONS_MS = 30 * 86_400_000

export interface PostgresStoreOptions extends Pick<PostgresSettings, 'place' | 'markBase'> {
  /** A commit that takes longer is given up (default 2000). */
  readonly leaseMs?: number
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
}

export interface PostgresStore extends Store {
  /** Rejects with the StoreFault of the opening. */
  readonly opened: Promise<void>
  queueDepth(): number
}

interface Reader {
  readonly db: Kysely<Schema>
  end(): Promise<void>
}

/**
 * Opens the database at once, in the background; `load` is the first to report the outcome. Faults: all are
 * StoreFault, one line that names the store and what to do, never its password. A failed commit ends writing
 * for good: it is unknown whether it was written.
 */
export function createPostgresStore(options: PostgresStoreOptions): PostgresStore {
  const settings = settingsOf(options)
  const name = describePlace(settings.place)
  const writer = createWorkerLink<PostgresRequest, PostgresAnswers>(name, workerFile(), settings, {
    onFault: (fault) => {
      queue.fail(fault)
      options.onLost?.(fault)
    },
    onNote: (line) => options.onWaiting?.(line),
  })
  const queue = createCommitQueue(async (batches) => {
    const from = performance.now()
    await writer.ask({ op: 'commit', batches })
    options.onCommit?.(performance.now() - from, batches.length)
  })
  const reader = open()
  // Callers get the fault; without a caller it must not end the process.
  const opened = reader.then(() => undefined)
  opened.catch(() => undefined)

  async function open(): Promise<Reader> {
    try {
      for (const line of await writer.open()) options.log?.(line)
      return readingPool(settings.place, await writer.ask({ op: 'host' }))
    } catch (error) {
      await writer.close()
      throw error
    }
  }

  async function read<T>(query: (db: Kysely<Schema>) => Promise<T>): Promise<T> {
    const { db } = await reader
    try {
      return await query(db)
    } catch (error) {
      throw faultOf(error, name)
    }
  }

  async function close(): Promise<void> {
    const end = (await reader.catch(() => null))?.end
    await queue.end(new StoreFault(`${name}: the store is closed`))
    await Promise.all([end?.(), writer.close()])
  }

  let closed: Promise<void> | null = null
  return {
    load: async () => decodeState(await read(loadRows)),
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
    queueDepth: () => queue.depth(),
    keepsDecisions: true,
    reads: readsOf(read),
    close: () => (closed ??= close()),
  }
}

function settingsOf(options: PostgresStoreOptions): PostgresSettings {
  const { retainEvents = RETAIN_EVENTS, retainEventBytes = null, retainEventsMs = null } = options
  const { retainDecisions = RETAIN_DECISIONS, retainDecisionsMs = RETAIN_DECISIONS_MS } = options
  return {
    place: options.place,
    markBase: options.markBase,
    leaseMs: options.leaseMs ?? LEASE_MS,
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

function readsOf(read: <T>(query: (db: Kysely<Schema>) => Promise<T>) => Promise<T>): StoreReads {
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
