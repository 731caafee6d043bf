/**
 * Series in files: a folder of segments, each a head and frames of length, CRC-32 and bytes. Files are
 * written and read off the main thread and never synced: kill -9 loses no data handed to the system, a power
 * failure some seconds. A torn frame ends its segment; a damaged one sets the file aside, and the frames
 * before it are still used.
 */
import { appendFile, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import type { SeriesArchive } from '../ports/series-archive.ts'
import { errorText } from '../../protocol/error-text.ts'

export interface SeriesFilesOptions {
  /** Created if missing. */
  readonly dir: string
  readonly log: (line: string) => void
}

const HEAD = Buffer.from('headroom series 1\n')
const FRAME_BYTES = 8
/** Larger sizes mean a damaged frame. */
const MAX_RECORD_BYTES = 64 * 1024 * 1024
/** Maximum of unwritten bytes; beyond it rows are dropped. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024
/** `node-10s.1767323040`: the log, and the begin of the segment in seconds since the Unix epoch. */
const SEGMENT = /^([a-z]+-\d+s)\.(\d{1,12})$/

interface Log {
  /** Begins of its segments, oldest first. */
  readonly segments: number[]
  /** The last frame may be torn: nothing is appended before the next segment. */
  isBroken: boolean
}

class SeriesFiles implements SeriesArchive {
  readonly #dir: string
  readonly #tell: (line: string) => void
  readonly #logs = new Map<string, Log>()
  #waitingBytes = 0
  #isTroubleTold = false
  /** Serialises operations. */
  #work: Promise<void> = Promise.resolve()
  #isOpened = false

  constructor({ dir, log }: SeriesFilesOptions) {
    this.#dir = dir
    this.#tell = log
  }

  async *read(name: string): AsyncGenerator<readonly Uint8Array[]> {
    await this.#then(async () => {})
    const { segments } = this.#logNamed(name)
    for (const segment of [...segments]) {
      const path = this.#path(name, segment)
      const { records, damage } = await readSegment(path)
      if (damage !== null) {
        segments.splice(segments.indexOf(segment), 1)
        await this.#setAside(name, path, damage)
      }
      yield records
    }
  }

  append(name: string, records: readonly Uint8Array[], opensAt: number | null): boolean {
    const log = this.#logNamed(name)
    if (opensAt !== null) log.isBroken = false
    if (log.isBroken) return false
    const bytes = Buffer.concat(records.flatMap((record) => [headOfFrame(record), record]))
    if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) {
      log.isBroken = true
      this.#failed(new Error('the disk is too slow'))
      return false
    }
    this.#waitingBytes += bytes.length
    void this.#then(async () => {
      try {
        if (await this.#write(name, bytes, opensAt)) this.#isTroubleTold = false
      } catch (error) {
        log.isBroken = true
        this.#failed(error)
      }
      this.#waitingBytes -= bytes.length
    })
    return true
  }

  trim(name: string, before: number): void {
    void this.#then(async () => {
      const { segments } = this.#logNamed(name)
      while (segments[1] !== undefined && segments[1] * 1000 <= before) {
        await rm(this.#path(name, segments.shift() as number), { force: true }).catch((error: unknown) =>
          this.#failed(error),
        )
      }
    })
  }

  close(): Promise<void> {
    return this.#work
  }

  /** Created on first use: the store creates the data directory, and refuses one that is in use. */
  #then(step: () => Promise<void>): Promise<void> {
    if (!this.#isOpened) this.#work = this.#open().catch((error: unknown) => this.#failed(error))
    this.#isOpened = true
    this.#work = this.#work.then(step)
    return this.#work
  }

  async #open(): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 })
    for (const file of await readdir(this.#dir)) {
      const [, name, start] = SEGMENT.exec(file) ?? []
      if (name !== undefined) this.#logNamed(name).segments.push(Number(start))
    }
    for (const { segments } of this.#logs.values()) segments.sort((a, b) => a - b)
  }

  /** @returns false if an earlier operation failed */
  async #write(name: string, bytes: Buffer, opensAt: number | null): Promise<boolean> {
    const log = this.#logNamed(name)
    if (opensAt !== null) {
      // After a clock was set back a segment never precedes earlier ones.
      log.segments.push(Math.max(Math.floor(opensAt / 1000), (log.segments.at(-1) ?? 0) + 1))
    }
    if (log.isBroken) return false
    const path = this.#path(name, log.segments.at(-1) as number)
    await appendFile(path, opensAt === null ? bytes : Buffer.concat([HEAD, bytes]), { mode: 0o600 })
    return true
  }

  /** One damaged file per log is kept for inspection. */
  async #setAside(name: string, path: string, damage: string): Promise<void> {
    const aside = join(this.#dir, `${name}.damaged`)
    this.#tell(`${path} is damaged (${damage}): renamed to ${aside}`)
    await rename(path, aside).catch((error: unknown) => this.#failed(error))
  }

  #logNamed(name: string): Log {
    let log = this.#logs.get(name)
    if (log === undefined) {
      // The last frame of an earlier process may be torn.
      log = { segments: [], isBroken: true }
      this.#logs.set(name, log)
    }
    return log
  }

  #path(name: string, segment: number): string {
    return join(this.#dir, `${name}.${segment}`)
  }

  /** Reported once, until a write succeeds again. */
  #failed(error: unknown): void {
    if (!this.#isTroubleTold) this.#tell(`series cannot be stored in ${this.#dir}: ${errorText(error)}`)
    this.#isTroubleTold = true
  }
}

export function createSeriesFiles(options: SeriesFilesOptions): SeriesArchive {
  return new SeriesFiles(options)
}

function headOfFrame(record: Uint8Array): Buffer {
  const head = Buffer.alloc(FRAME_BYTES)
  head.writeUInt32LE(record.length, 0)
  head.writeUInt32LE(crc32(record), 4)
  return head
}

async function readSegment(
  path: string,
): Promise<{ readonly records: readonly Uint8Array[]; readonly damage: string | null }> {
  let file: Buffer
  try {
    file = await readFile(path)
  } catch (error) {
    return { records: [], damage: errorText(error) }
  }
  const records: Uint8Array[] = []
  if (!file.subarray(0, HEAD.length).equals(HEAD.subarray(0, file.length)))
    return { records, damage: 'no series of this version' }
  let at = HEAD.length
  while (at + FRAME_BYTES <= file.length) {
    const length = file.readUInt32LE(at)
    if (length === 0 || length > MAX_RECORD_BYTES) return { records, damage: `no record at byte ${at}` }
    const record = file.subarray(at + FRAME_BYTES, at + FRAME_BYTES + length)
    if (record.length < length) break
    if (crc32(record) !== file.readUInt32LE(at + 4))
      return { records, damage: `the checksum at byte ${at} is wrong` }
    records.push(record)
    at += FRAME_BYTES + length
  }
  return { records, damage: null }
}
