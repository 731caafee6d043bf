/**
 * Persists what a GPU server must know after a restart: one file that is appended to and fsynced, and
 * rewritten as one snapshot when it has grown. A record is a line, `<CRC-32 in hex> <JSON>`, with all changes
 * of one save, so that a save is stored completely or not at all.
 * Its size is bounded by its content: seen tasks (`MAX_SEEN_TASKS`, oldest forgotten first), living attempts,
 * and unacknowledged ends (together at most one snapshot's worth). The rest is history, which the next
 * snapshot drops.
 */
import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { FinishedEvent } from '../protocol/messages.ts'
import { ReplayedState } from './core/replayed-state.ts'
import type { AttemptDescription, KeptAttempt, NodeChange, NodeState, NodeStorage } from './core/storage.ts'
import { StateFault } from './state-fault.ts'
import { lockFolder } from './state-lock.ts'
import { errorText } from '../protocol/error-text.ts'

/** A snapshot is due when this many bytes, and twice the last snapshot, were appended since. */
const COMPACT_FROM_BYTES = 1024 * 1024
const FORMAT = 1

export interface DiskStorage extends NodeStorage {
  /** Current size of the file. */
  readonly bytes: number
  close(): void
}

export interface DiskStorageOptions {
  /** Created when missing. */
  readonly folder: string
  /** Called once, when nothing can be made durable any more (R10): the process must end. */
  readonly onFault: (fault: StateFault) => void
  /** For tests: less than `COMPACT_FROM_BYTES`. */
  readonly compactFromBytes?: number
}

interface Snapshot {
  readonly format: number
  readonly boot: number
  readonly epoch: number
  /** Absent in snapshots older than these two fields. */
  readonly controller?: string | null
  readonly eventSeq?: number
  readonly attempts: readonly (readonly [string, number])[]
  readonly burned: readonly (readonly [string, number])[]
  readonly living: readonly KeptAttempt[]
  /** Absent in snapshots older than the field. */
  readonly described?: readonly AttemptDescription[]
  readonly finished: readonly FinishedEvent[]
}

/** Throws StateFault: another server uses the folder, the file is damaged, or the disk refuses access. */
export function openDiskStorage(options: DiskStorageOptions): DiskStorage {
  return new JournalStorage(options)
}

class JournalStorage implements DiskStorage {
  readonly #options: DiskStorageOptions
  readonly #path: string
  readonly #unlock: () => void
  #kept: NodeState
  #fd = -1
  #bytes = 0
  #snapshotBytes = 0
  #fault: StateFault | null = null

  constructor(options: DiskStorageOptions) {
    this.#options = options
    this.#path = join(options.folder, 'journal')
    makeFolder(options.folder)
    this.#unlock = lockFolder(options.folder)
    try {
      this.#kept = readJournal(this.#path)
      // Removes a torn last line.
      this.#writeSnapshot(this.#kept)
    } catch (error) {
      this.#unlock()
      throw asFault(error, this.#path)
    }
  }

  get bytes(): number {
    return this.#bytes
  }

  load(): NodeState {
    return this.#kept
  }

  save(state: NodeState, changes: readonly NodeChange[]): void {
    if (this.#fault !== null) throw this.#fault
    try {
      this.#append(record({ changes }))
      if (
        this.#bytes - this.#snapshotBytes >
        Math.max(this.#options.compactFromBytes ?? COMPACT_FROM_BYTES, 2 * this.#snapshotBytes)
      )
        this.#writeSnapshot(state)
    } catch (error) {
      this.#fault = asFault(error, this.#path)
      this.#options.onFault(this.#fault)
      throw this.#fault
    }
  }

  close(): void {
    this.#fault ??= new StateFault(`${this.#path}: it was closed`)
    if (this.#fd >= 0) closeSync(this.#fd)
    this.#fd = -1
    this.#unlock()
  }

  #append(line: Buffer): void {
    writeAll(this.#fd, line)
    fdatasyncSync(this.#fd)
    this.#bytes += line.byteLength
  }

  /** Written to a second file; the old one is valid until the new one is durable. */
  #writeSnapshot(state: NodeState): void {
    const line = record({ snapshot: snapshotOf(state) })
    const next = `${this.#path}.new`
    rmSync(next, { force: true })
    const fd = openSync(next, 'ax', 0o600)
    try {
      writeAll(fd, line)
      fsyncSync(fd)
      renameSync(next, this.#path)
      syncFolder(this.#options.folder)
    } catch (error) {
      closeSync(fd)
      throw error
    }
    if (this.#fd >= 0) closeSync(this.#fd)
    this.#fd = fd
    this.#bytes = line.byteLength
    this.#snapshotBytes = line.byteLength
  }
}

// ── reading ────────────────────────────────────────────────────────────────

/** Reads every durable save. The last line may be torn; an invalid line before it is damage. */
function readJournal(path: string): NodeState {
  const bytes = readIfThere(path)
  const replay = new Replay()
  let line = 1
  for (let from = 0; from < bytes.byteLength; line++) {
    const newline = bytes.indexOf(NEWLINE, from)
    const to = newline < 0 ? bytes.byteLength : newline
    const value = newline < 0 ? null : parsed(bytes.subarray(from, to))
    const isLast = to + 1 >= bytes.byteLength
    if (value === null) {
      if (isLast && line > 1) break
      throw new StateFault(
        `${path}: line ${line} is damaged, so the attempts that have run here are not known. Restore ` +
          'the file, or move the whole folder away when no task of this server is running.',
      )
    }
    replay.apply(value, path)
    from = to + 1
  }
  return replay.state()
}

class Replay {
  #state = new ReplayedState()

  apply(
    value: { readonly snapshot?: Snapshot; readonly changes?: readonly NodeChange[] },
    path: string,
  ): void {
    if (value.snapshot !== undefined) this.#state = new ReplayedState(stateOf(value.snapshot, path))
    for (const change of value.changes ?? []) this.#state.apply(change)
  }

  state(): NodeState {
    return this.#state.state()
  }
}

function stateOf(snapshot: Snapshot, path: string): NodeState {
  if (snapshot.format !== FORMAT)
    throw new StateFault(`${path}: has format ${snapshot.format}; this version reads format ${FORMAT}`)
  return {
    bootCounter: snapshot.boot,
    highestEpoch: snapshot.epoch,
    controller: snapshot.controller ?? null,
    eventSeq: snapshot.eventSeq ?? 0,
    attempts: new Map(snapshot.attempts),
    burned: new Map(snapshot.burned),
    living: new Map(snapshot.living.map((attempt) => [attempt.taskId, attempt])),
    described: new Map(snapshot.described?.map((of) => [of.taskId, of])),
    outbox: snapshot.finished,
  }
}

function parsed(
  line: Buffer,
): { readonly snapshot?: Snapshot; readonly changes?: readonly NodeChange[] } | null {
  const json = line.subarray(CHECKSUM_BYTES)
  if (line.subarray(0, CHECKSUM_BYTES).toString('latin1') !== checksum(json)) return null
  return JSON.parse(json.toString('utf8')) as { snapshot?: Snapshot; changes?: NodeChange[] }
}

// ── writing ────────────────────────────────────────────────────────────────

const NEWLINE = 10
/** Eight hex digits and a space. */
const CHECKSUM_BYTES = 9

function snapshotOf(state: NodeState): Snapshot {
  return {
    format: FORMAT,
    boot: state.bootCounter,
    epoch: state.highestEpoch,
    controller: state.controller ?? null,
    eventSeq: state.eventSeq ?? 0,
    attempts: [...state.attempts],
    burned: [...state.burned],
    living: [...state.living.values()],
    described: [...(state.described?.values() ?? [])],
    finished: state.outbox.filter((event): event is FinishedEvent => event.kind === 'finished'),
  }
}

function record(
  value: { readonly snapshot: Snapshot } | { readonly changes: readonly NodeChange[] },
): Buffer {
  const json = Buffer.from(JSON.stringify(value), 'utf8')
  return Buffer.concat([Buffer.from(checksum(json), 'latin1'), json, Buffer.of(NEWLINE)])
}

function checksum(json: Buffer): string {
  return `${crc32(json).toString(16).padStart(8, '0')} `
}

/** A full disk may accept only a part. */
function writeAll(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.byteLength;) at += writeSync(fd, bytes, at)
}

// ── the folder ─────────────────────────────────────────────────────────────

function makeFolder(folder: string): void {
  try {
    // Not recursive: mkdir with parents never returns for a folder in which none can be made (/proc).
    let missing: string | null = null
    for (let each = folder; !existsSync(each); each = dirname(each)) missing = each
    if (missing !== null) mkdirSync(missing, { mode: 0o711 })
    // Tasks of another user reach their sockets through it, and cannot list it.
    mkdirSync(folder, { recursive: true, mode: 0o711 })
  } catch (error) {
    throw asFault(error, folder)
  }
}

function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

function readIfThere(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

function asFault(error: unknown, path: string): StateFault {
  if (error instanceof StateFault) return error
  return new StateFault(`${path}: ${errorText(error)}`, {
    cause: error,
  })
}
