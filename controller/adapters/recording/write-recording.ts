/**
 * Writes a recording into a folder of files and removes the oldest. Entries are serialised at once, except
 * the state at a start; deflating, hashing and writing happen some hundred milliseconds later, outside the
 * main thread. A failure ends the recording, never the controller.
 */
import { randomUUID } from 'node:crypto'
import { writeSync } from 'node:fs'
import { mkdir, open, readdir, rm, statfs, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { deflateRaw, deflateRawSync } from 'node:zlib'
import type { RecordedEntry, RecordingLog } from '../../ports/recording-log.ts'
import {
  chainStart,
  CHECKPOINT_NAME,
  checkpointName,
  encodeBlock,
  encodeHeader,
  FILE_NAME,
  fileName,
  FORMAT_VERSION,
  GENESIS,
  HEADER_BYTES,
  type FileHeader,
} from './format.ts'
import { loadedLine, type LoadedEntry } from './loaded-line.ts'
import { headerOf } from './read-file.ts'
import { errorText } from '../../../protocol/error-text.ts'

export interface RecordingFilesOptions {
  /** Created with mode 0700 if missing. */
  readonly dir: string
  /** Size in bytes after which a new file begins; at least 1. */
  readonly fileBytes: number
  /** Number of files kept, the newest; at least 2. */
  readonly maxFiles: number
  /** Version of the program. */
  readonly version: string
  readonly now: () => number
  /** Called with one line when the recording has ended. */
  readonly onStopped: (reason: string) => void
  /**
   * Writes the checkpoint from which `next` continues; `first`, the complete file before it in the same run,
   * is removed once the checkpoint is durable. Aborting keeps both files. Omitted: no checkpoint is written.
   */
  readonly fold?: (first: string, next: string, signal: AbortSignal) => Promise<void>
  /**
   * Called when a file was removed without a checkpoint, and why: the rest of its run cannot be replayed.
   * Once for each run.
   */
  readonly onHeadless?: (reason: string) => void
  /** Returns the free bytes on the disk of a folder. Default: as the file system reports. */
  readonly freeBytes?: (dir: string) => Promise<number>
}

export interface RecordingFiles extends RecordingLog {
  /** Why it ended; null: it continues. */
  readonly stopped: string | null
  readonly writtenBytes: number
  readonly entries: number
  /** Writes everything to the disk and accepts nothing more. */
  close(): Promise<void>
  /** For a process that must end at once: writes pending data synchronously. */
  flushNow(): void
}

/**
 * While checkpoints are being written this number of additional files may exist; beyond it the oldest is
 * removed without one.
 */
const MAX_FILES_BEHIND = 4
const FLUSH_AFTER_MS = 200
const FLUSH_FROM_CHARS = 262_144
/** Maximum of characters waiting to be written; beyond it the disk is too slow. */
const MAX_WAITING_CHARS = 67_108_864
/** Below this number of free bytes the disk is left to the store. */
const MIN_FREE_BYTES = 134_217_728

/** Why there is no checkpoint: the files stay, and the next controller writes it. */
const ENDED = 'the recording has ended'
const TOO_SLOW = 'checkpoints take longer than files'

const deflate = promisify(deflateRaw)
const DEFLATE = { level: 1 } as const

/** Begins a new file, the first of a run. */
export function createRecordingFiles(options: RecordingFilesOptions): RecordingFiles {
  return new Files(options)
}

interface OpenFile {
  readonly handle: FileHandle
  readonly header: FileHeader
  size: number
}

function lineOf(line: string | RecordedEntry): string {
  return typeof line === 'string' ? line : `${JSON.stringify(line)}\n`
}

class Files implements RecordingFiles {
  stopped: string | null = null
  writtenBytes = 0
  entries = 0
  readonly #o: RecordingFilesOptions
  readonly #run = randomUUID()
  #lines: (string | LoadedEntry)[] = []
  #waitingChars = 0
  #timer: NodeJS.Timeout | null = null
  #file: OpenFile | null = null
  #number = 0
  /** Files are being removed. */
  #tidying: Promise<void> | null = null
  /** The run whose loss of its beginning was reported. */
  #headless: string | null = null
  #part = 0
  #hash = GENESIS
  /** A write is in progress. */
  #work: Promise<void> | null = null
  #isClosed = false
  /** A checkpoint is being written. */
  #folding: AbortController | null = null

  constructor(options: RecordingFilesOptions) {
    this.#o = options
  }

  get isOpen(): boolean {
    return this.stopped === null && !this.#isClosed
  }

  append(entry: RecordedEntry): void {
    if (!this.isOpen) return
    this.entries += 1
    const line = entry.k === 'loaded' ? entry : lineOf(entry)
    this.#lines.push(line)
    if (typeof line === 'string') this.#waitingChars += line.length
    if (this.#waitingChars > MAX_WAITING_CHARS) void this.#stop('the disk is too slow')
    else if (this.#waitingChars >= FLUSH_FROM_CHARS) this.#flush()
    else this.#timer ??= setTimeout(() => this.#flush(), FLUSH_AFTER_MS).unref()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    while (this.stopped === null && (this.#work !== null || this.#lines.length > 0)) {
      this.#flush()
      await this.#work
    }
    // The mark of a gap is not written yet.
    await this.#work
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#file?.handle.close()
    this.#file = null
    // The next controller starts an unfinished checkpoint again.
    this.#folding?.abort(ENDED)
    await this.#tidying
  }

  flushNow(): void {
    const file = this.#file
    if (file === null || this.#work !== null || this.stopped !== null || this.#lines.length === 0) return
    this.#isClosed = true
    try {
      const { bytes } = encodeBlock(
        this.#hash,
        deflateRawSync(this.#lines.map(lineOf).join(''), DEFLATE),
        this.#lines.length,
      )
      writeSync(file.handle.fd, bytes, 0, bytes.length, file.size)
    } catch {
      // The process ends, so the outcome is ignored.
    }
  }

  #flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    if (this.#work !== null || this.stopped !== null) return
    this.#work = this.#write()
      .catch((error: unknown) => this.#stop(errorText(error)))
      .finally(() => {
        this.#work = null
        if (this.stopped === null && this.#waitingChars >= FLUSH_FROM_CHARS) this.#flush()
        else if (this.stopped === null && this.#lines.length > 0)
          this.#timer ??= setTimeout(() => this.#flush(), FLUSH_AFTER_MS).unref()
      })
  }

  async #write(): Promise<void> {
    const lines = this.#lines
    this.#lines = []
    this.#waitingChars = 0
    if (lines.length === 0) return
    const free = await (this.#o.freeBytes ?? freeBytes)(await this.#folder())
    if (free < MIN_FREE_BYTES)
      throw new Error(`only ${Math.floor(free / 1_048_576)} MiB are free: they are left to the store`)
    const file = this.#file ?? (await this.#begin())
    let text = ''
    for (const line of lines) text += typeof line === 'string' ? line : await loadedLine(line)
    const { bytes, hash } = encodeBlock(this.#hash, await deflate(text, DEFLATE), lines.length)
    const { bytesWritten } = await file.handle.write(bytes, 0, bytes.length, file.size)
    if (bytesWritten < bytes.length) throw new Error('ENOSPC: no space left on device, write')
    this.#hash = hash
    this.writtenBytes += bytes.length + (file.size === HEADER_BYTES ? HEADER_BYTES : 0)
    file.size += bytes.length
    if (file.size < this.#o.fileBytes) return
    this.#file = null
    await file.handle.close()
  }

  async #folder(): Promise<string> {
    const { dir } = this.#o
    if (this.#number === 0) await mkdir(dir, { recursive: true, mode: 0o700 })
    return dir
  }

  /** Begins the next file and removes the oldest in parallel. */
  async #begin(): Promise<OpenFile> {
    const { dir, version, now } = this.#o
    const names = await this.#names()
    this.#number = Math.max(this.#number, Number.parseInt(names.at(-1) ?? '0', 10)) + 1
    const header: FileHeader = {
      headroom_recording: FORMAT_VERSION,
      run: this.#run,
      part: this.#part++,
      previous: this.#hash,
      version,
      opened: new Date(now()).toISOString(),
      gap: null,
    }
    const handle = await open(join(dir, fileName(this.#number)), 'wx', 0o600)
    const bytes = encodeHeader(header)
    await handle.write(bytes, 0, bytes.length, 0)
    this.#hash = chainStart(header)
    this.#file = { handle, header, size: bytes.length }
    if (names.length >= this.#o.maxFiles + MAX_FILES_BEHIND) this.#folding?.abort(TOO_SLOW)
    this.#tidying ??= this.#tidy().finally(() => (this.#tidying = null))
    return this.#file
  }

  async #names(): Promise<string[]> {
    return (await readdir(this.#o.dir))
      .filter((name) => FILE_NAME.test(name))
      .sort((a, b) => (a < b ? -1 : 1))
  }

  /**
   * Removes the oldest files; the first file that remains gets its checkpoint before. A file that cannot be
   * removed stays until the next time.
   */
  async #tidy(): Promise<void> {
    const { dir, maxFiles } = this.#o
    try {
      await this.#sweep()
      for (let names = await this.#names(); names.length > maxFiles; names = await this.#names()) {
        const [first, next] = names.map((name) => join(dir, name)) as [string, string]
        const run = runOf(first, next)
        const why = run === null ? null : await this.#fold(first, next, names.length)
        if (why === ENDED) return
        await rm(first)
        await rm(checkpointName(first), { force: true })
        if (run === null || why === null || run === this.#headless) continue
        this.#headless = run
        this.#o.onHeadless?.(why)
      }
    } catch {
      // The next write to the folder reports the problem.
    }
  }

  /** Why there is no checkpoint; null: there is one. */
  async #fold(first: string, next: string, files: number): Promise<string | null> {
    const { fold, maxFiles } = this.#o
    if (fold === undefined) return 'checkpoints are off'
    if (this.#isClosed) return ENDED
    if (files > maxFiles + MAX_FILES_BEHIND + 1) return TOO_SLOW
    const { signal } = (this.#folding = new AbortController())
    try {
      await fold(first, next, signal)
      return null
    } catch (error) {
      if (signal.aborted) return String(signal.reason)
      return errorText(error)
    } finally {
      this.#folding = null
    }
  }

  /** Leftovers of a crash: an unfinished checkpoint, or one whose file is gone. */
  async #sweep(): Promise<void> {
    const { dir } = this.#o
    const names = await readdir(dir)
    const kept = new Set(names.filter((name) => FILE_NAME.test(name)).map(checkpointName))
    const lost = names.filter(
      (name) => name.endsWith('.checkpoint.new') || (CHECKPOINT_NAME.test(name) && !kept.has(name)),
    )
    for (const name of lost) await rm(join(dir, name))
  }

  /** The mark is written into the header, which has room also on a full disk. */
  async #stop(reason: string): Promise<void> {
    if (this.stopped !== null) return
    this.stopped = reason
    this.#lines = []
    this.#waitingChars = 0
    this.#o.onStopped(reason)
    const file = this.#file
    this.#file = null
    if (file === null) return
    const marked = encodeHeader({
      ...file.header,
      gap: { at: new Date(this.#o.now()).toISOString(), reason },
    })
    await file.handle.write(marked, 0, marked.length, 0).catch(() => {})
    await file.handle.close().catch(() => {})
  }
}

/** The run of two consecutive files; null: the second does not continue the first. */
function runOf(first: string, next: string): string | null {
  const [a, b] = [headerOf(first), headerOf(next)]
  return a.run === b.run && b.part === a.part + 1 ? a.run : null
}

async function freeBytes(dir: string): Promise<number> {
  const { bavail, bsize } = await statfs(dir)
  return bavail * bsize
}
