/**
 * The durable store: one SQLite file, written by one worker thread and read by another (docs/decisions/0020).
 * The main thread only converts between records and rows.
 */
import { extname, join, resolve } from 'node:path'
import type { StoreKind } from '../../model/store-kind.ts'
import { StoreFault, type Batch, type Store, type StoreReads } from '../../ports/store.ts'
import { createCommitQueue, type CommitQueue } from '../sql/commit-queue.ts'
import { decodeDecision } from '../sql/decisions.ts'
import type { EventRetention } from '../sql/pruning.ts'
import { damaged } from './faults.ts'
import { oneLine } from '../sql/one-line.ts'
import type { WriterAnswers, WriterRequest } from '../sql/messages.ts'
import type { Answers, ReaderRequest, WorkerSettings } from './messages.ts'
import { decodeAudit, decodeConfig, decodeEvent, decodeState, decodeTask, encodeBatch } from '../sql/rows.ts'
import { createWorkerLink, type WorkerLink } from '../sql/worker-link.ts'

export interface SqliteStoreOptions {
  /** The directory of `headroom.db`; created with mode 0700 if absent. */
  readonly dataDir?: string
  /** Or the file itself. Give exactly one of the two. */
  readonly path?: string
  /**
   * How long to wait for a controller that is ending, or for another program that has locked the file
   * (default 2000).
   */
  readonly busyTimeoutMs?: number
  /** Maximum number of events kept, the newest (default 1,000,000). */
  readonly retainEvents?: number
  /** Approximate maximum of bytes of the file (default: no limit). */
  readonly retainEventBytes?: number
  /** Maximum age (default: no limit). */
  readonly retainEventsMs?: number
  /** Maximum number of decisions kept, the newest (default 200,000). */
  readonly retainDecisions?: number
  /** Maximum age (default 30 days). */
  readonly retainDecisionsMs?: number
  /** Maximum size of the file in pages of 4 KiB; beyond it the disk counts as full. Default: no limit. */
  readonly maxPages?: number
  /** The store must exist: none is created (default false). */
  readonly isStoreExpected?: boolean
  /**
   * Starts although the store does not reach this mark, as named by the refusal. Default: such a store is
   * refused.
   */
  readonly acceptLoss?: string
  /** The required kind of store; one without a kind is marked (default: any). */
  readonly kind?: StoreKind
  /** Called with changes of the file: created, migrated. */
  readonly log?: (line: string) => void
  /** Called for each transaction: the time from the call until it was durable, and its number of batches. */
  readonly onCommit?: (ms: number, batches: number) => void
}

export interface SqliteStore extends Store {
  /** Number of batches that wait for the current transaction. */
  queueDepth(): number
}

export const STORE_FILE = 'headroom.db'

const BUSY_TIMEOUT_MS = 2000
const RETAIN_EVENTS = 1_000_000
const RETAIN_DECISIONS = 200_000
const RETAIN_DECISIONS_MS = 30 * 86_400_000

type Writer = WorkerLink<WriterRequest, WriterAnswers>
type Reader = WorkerLink<ReaderRequest, Answers>

interface Threads {
  readonly writer: Writer
  readonly reader: Reader
  /** Resolves when both threads are ready, rejects with the StoreFault of the file. */
  readonly opened: Promise<void>
}

/**
 * Opens the file at once, in the background; `load` is the first to report the outcome. Faults: all are
 * StoreFault, one line that names the file and what to do. A failed commit ends writing for good; reads
 * continue.
 * @throws TypeError unless exactly one of `dataDir` and `path` is given, or if a limit is not an integer
 */
export function createSqliteStore(options: SqliteStoreOptions): SqliteStore {
  const settings = settingsOf(options)
  const threads = start(settings, options.log)
  const queue = createCommitQueue(
    timed((batches) => threads.writer.ask({ op: 'commit', batches }), options.onCommit),
  )
  const ask = askWhenOpen(threads)
  let closed: Promise<void> | null = null
  return {
    load: async () => decoded(settings.path, decodeState, await ask({ op: 'load' })),
    commit: (batch) => commit(queue, batch),
    queueDepth: () => queue.depth(),
    keepsDecisions: true,
    reads: readsOf(ask),
    close: () => (closed ??= close(settings.path, queue, threads)),
  }
}

/** quick_check examines pages, not the contents of their records. */
function decoded<R, T>(path: string, decode: (rows: R) => T, rows: R): T {
  try {
    return decode(rows)
  } catch (cause) {
    throw new StoreFault(damaged(path, `(a record is not JSON: ${oneLine(String(cause))})`), { cause })
  }
}

type Write = Parameters<typeof createCommitQueue>[0]

function timed(write: Write, onCommit: SqliteStoreOptions['onCommit']): Write {
  if (onCommit === undefined) return write
  return async (batches) => {
    const from = performance.now()
    await write(batches)
    onCommit(performance.now() - from, batches.length)
  }
}

function settingsOf(options: SqliteStoreOptions): WorkerSettings {
  const { dataDir, path, busyTimeoutMs = BUSY_TIMEOUT_MS, maxPages } = options
  const { retainDecisions = RETAIN_DECISIONS, retainDecisionsMs = RETAIN_DECISIONS_MS } = options
  if ((dataDir === undefined) === (path === undefined))
    throw new TypeError('a SQLite store needs either dataDir or path')
  requireWhole('busyTimeoutMs', busyTimeoutMs, 0)
  if (maxPages !== undefined) requireWhole('maxPages', maxPages, 1)
  requireWhole('retainDecisions', retainDecisions, 1)
  requireWhole('retainDecisionsMs', retainDecisionsMs, 1)
  return {
    path: resolve(path ?? join(dataDir ?? '', STORE_FILE)),
    busyTimeoutMs,
    retention: retentionOf(options),
    decisionRetention: { maxDecisions: retainDecisions, maxAgeMs: retainDecisionsMs },
    maxPages: maxPages ?? null,
    isStoreExpected: options.isStoreExpected ?? false,
    acceptLoss: options.acceptLoss ?? null,
    kind: options.kind ?? null,
  }
}

function retentionOf({
  retainEvents = RETAIN_EVENTS,
  retainEventBytes,
  retainEventsMs,
}: SqliteStoreOptions): EventRetention {
  for (const [name, value] of Object.entries({ retainEvents, retainEventBytes, retainEventsMs })) {
    if (value !== undefined) requireWhole(name, value, 1)
  }
  return { maxEvents: retainEvents, maxBytes: retainEventBytes ?? null, maxAgeMs: retainEventsMs ?? null }
}

function requireWhole(name: string, value: number, min: number): void {
  if (!Number.isSafeInteger(value) || value < min)
    throw new TypeError(`${name} must be a whole number from ${min}, not ${value}`)
}

function start(settings: WorkerSettings, log: SqliteStoreOptions['log']): Threads {
  const { path } = settings
  const threads = {
    writer: createWorkerLink<WriterRequest, WriterAnswers>(path, worker('writer-worker'), settings),
    reader: createWorkerLink<ReaderRequest, Answers>(path, worker('reader-worker'), settings),
  }
  const opened = open(threads, log)
  // Callers get the fault; without a caller it must not end the process.
  opened.catch(() => undefined)
  return { ...threads, opened }
}

/** Sources run as .ts, an installed package as .js. */
function worker(name: string): URL {
  return new URL(`./${name}${extname(import.meta.url)}`, import.meta.url)
}

/**
 * The writer creates, checks and migrates the file before the reader opens it; both threads start meanwhile.
 */
async function open(
  { writer, reader }: Omit<Threads, 'opened'>,
  log: SqliteStoreOptions['log'],
): Promise<void> {
  try {
    const lines = await writer.open()
    for (const line of lines) log?.(line)
    await reader.open()
  } catch (error) {
    await Promise.all([writer.close(), reader.close()])
    throw error
  }
}

function askWhenOpen({ opened, reader }: Threads): Reader['ask'] {
  return async (request) => {
    await opened
    return reader.ask(request)
  }
}

function commit(queue: CommitQueue, batch: Batch): Promise<void> {
  try {
    return queue.add(encodeBatch(batch))
  } catch (cause) {
    const unstorable = new StoreFault(`a record cannot be stored: ${oneLine(String(cause))}`, { cause })
    queue.fail(unstorable)
    return Promise.reject(unstorable)
  }
}

function readsOf(ask: Reader['ask']): StoreReads {
  return {
    task: async (id) => {
      const record = await ask({ op: 'task', id })
      return record === null ? null : decodeTask(record)
    },
    finishedTasks: async (query) => (await ask({ op: 'finishedTasks', query })).map(decodeTask),
    events: async (query) => (await ask({ op: 'events', query })).map(decodeEvent),
    eventRange: () => ask({ op: 'eventRange' }),
    decision: async (number) => {
      const record = await ask({ op: 'decision', number })
      return record === null ? null : decodeDecision(record)
    },
    decisions: async (query) => (await ask({ op: 'decisions', query })).map(decodeDecision),
    audits: async (query) => (await ask({ op: 'audits', query })).map(decodeAudit),
    configRevisions: async (query) => (await ask({ op: 'configRevisions', query })).map(decodeConfig),
  }
}

/**
 * The last connection to close merges the log into the file. After a failure that must not be tried again, as
 * after a failed fsync: then the reader, which cannot write, closes last.
 */
async function close(path: string, queue: CommitQueue, { writer, reader, opened }: Threads): Promise<void> {
  await Promise.all([
    queue.end(new StoreFault(`${path}: the store is closed`)),
    opened.catch(() => undefined),
  ])
  if (queue.hasFailed()) await writer.close()
  await reader.close()
  await writer.close()
}
