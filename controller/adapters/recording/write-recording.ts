/**
 * Writes a recording into a folder of files, the oldest of which make room for new ones. Entries become text at once; deflating, hashing and
 * writing happen some hundred milliseconds later and beside the controller. What cannot be written ends the recording, never the controller.
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
  encodeBlock,
  encodeHeader,
  FILE_NAME,
  fileName,
  FORMAT_VERSION,
  GENESIS,
  HEADER_BYTES,
  type FileHeader,
} from './format.ts'

export interface RecordingFilesOptions {
  /** Made with mode 0700 when it is missing. */
  readonly dir: string
  /** A file that has grown to so many bytes is the last of its kind; from 1. */
  readonly fileBytes: number
  /** How many files are kept, the newest; from 2. */
  readonly maxFiles: number
  /** Of the program. */
  readonly version: string
  readonly now: () => number
  /** Recording has ended: why, in one line. */
  readonly onStopped: (reason: string) => void
  /** The first file of this run has made room: what follows cannot be decided again until the next start. Told once. */
  readonly onHeadless?: () => void
  /** Free bytes on the disk of a folder; a test has its own. Default: what the file system says. */
  readonly freeBytes?: (dir: string) => Promise<number>
}

export interface RecordingFiles extends RecordingLog {
  /** Why it ended; null: it goes on. */
  readonly stopped: string | null
  readonly writtenBytes: number
  readonly entries: number
  /** All there is goes to the disk; nothing is taken any more. */
  close(): Promise<void>
  /** For the end of a process that cannot wait: what is not on its way to the disk is written in this call. */
  flushNow(): void
}

const FLUSH_AFTER_MS = 200
const FLUSH_FROM_CHARS = 262_144
/** What may wait to be written, characters; past it the disk is too slow. */
const MAX_WAITING_CHARS = 67_108_864
/** Below this the disk is left to the store. */
export const MIN_FREE_BYTES = 134_217_728

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

class Files implements RecordingFiles {
  stopped: string | null = null
  writtenBytes = 0
  entries = 0
  readonly #o: RecordingFilesOptions
  readonly #run = randomUUID()
  #lines: string[] = []
  #waitingChars = 0
  #timer: NodeJS.Timeout | null = null
  #file: OpenFile | null = null
  #number = 0
  /** Of this run's first file, while it is there. */
  #head: string | null = null
  #part = 0
  #hash = GENESIS
  /** Something is on its way to the disk. */
  #work: Promise<void> | null = null
  #isClosed = false

  constructor(options: RecordingFilesOptions) {
    this.#o = options
  }

  get isOpen(): boolean {
    return this.stopped === null && !this.#isClosed
  }

  append(entry: RecordedEntry): void {
    if (!this.isOpen) return
    const line = `${JSON.stringify(entry)}\n`
    this.#lines.push(line)
    this.entries += 1
    this.#waitingChars += line.length
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
    // The mark of a gap is still written.
    await this.#work
    if (this.#timer !== null) clearTimeout(this.#timer)
    await this.#file?.handle.close()
    this.#file = null
  }

  flushNow(): void {
    const file = this.#file
    if (file === null || this.#work !== null || this.stopped !== null || this.#lines.length === 0) return
    this.#isClosed = true
    try {
      const { bytes } = encodeBlock(this.#hash, deflateRawSync(this.#lines.join(''), DEFLATE), this.#lines.length)
      writeSync(file.handle.fd, bytes, 0, bytes.length, file.size)
    } catch {
      // The process ends, and nobody listens any more.
    }
  }

  #flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    if (this.#work !== null || this.stopped !== null) return
    this.#work = this.#write()
      .catch((error: unknown) => this.#stop(error instanceof Error ? error.message : String(error)))
      .finally(() => {
        this.#work = null
        if (this.stopped === null && this.#waitingChars >= FLUSH_FROM_CHARS) this.#flush()
        else if (this.stopped === null && this.#lines.length > 0) this.#timer ??= setTimeout(() => this.#flush(), FLUSH_AFTER_MS).unref()
      })
  }

  async #write(): Promise<void> {
    const lines = this.#lines
    this.#lines = []
    this.#waitingChars = 0
    if (lines.length === 0) return
    const free = await (this.#o.freeBytes ?? freeBytes)(await this.#folder())
    if (free < MIN_FREE_BYTES) throw new Error(`only ${Math.floor(free / 1_048_576)} MiB are free: they are left to the store`)
    const file = this.#file ?? (await this.#begin())
    const { bytes, hash } = encodeBlock(this.#hash, await deflate(lines.join(''), DEFLATE), lines.length)
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

  /** The next file; the oldest make room for it. */
  async #begin(): Promise<OpenFile> {
    const { dir, maxFiles, version, now } = this.#o
    const names = (await readdir(dir)).filter((name) => FILE_NAME.test(name)).sort((a, b) => (a < b ? -1 : 1))
    for (const name of names.slice(0, Math.max(0, names.length - maxFiles + 1))) {
      await rm(join(dir, name))
      if (name !== this.#head) continue
      this.#head = null
      this.#o.onHeadless?.()
    }
    this.#number = Math.max(this.#number, Number.parseInt(names.at(-1) ?? '0', 10)) + 1
    if (this.#part === 0) this.#head = fileName(this.#number)
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
    return this.#file
  }

  /** The mark goes into the header, for which there is room also on a full disk. */
  async #stop(reason: string): Promise<void> {
    if (this.stopped !== null) return
    this.stopped = reason
    this.#lines = []
    this.#waitingChars = 0
    this.#o.onStopped(reason)
    const file = this.#file
    this.#file = null
    if (file === null) return
    const marked = encodeHeader({ ...file.header, gap: { at: new Date(this.#o.now()).toISOString(), reason } })
    await file.handle.write(marked, 0, marked.length, 0).catch(() => {})
    await file.handle.close().catch(() => {})
  }
}

async function freeBytes(dir: string): Promise<number> {
  const { bavail, bsize } = await statfs(dir)
  return bavail * bsize
}
