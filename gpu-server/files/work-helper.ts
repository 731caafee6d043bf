/**
 * The process that reads and writes the files of one task, as its user (guard/files.c). The server itself
 * opens no path that a task could have chosen.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { constants } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { constants as os } from 'node:os'
import type { TaskUser } from '../guard/guards.ts'

/** open(2): names a folder without a right to read it. Node does not export it. */
const O_PATH = 0o10000000
const HEADER_BYTES = 24
const REPLY_BYTES = 32
const ANSWER_LIMIT_MS = 30_000

const OPERATIONS = { read: 1, list: 2, folder: 3, write: 4, link: 5, usage: 6 } as const
export const WRITE_NEW = 1
export const WRITE_EXECUTABLE = 2

export interface HelperRequest {
  readonly op: keyof typeof OPERATIONS
  readonly a?: number
  readonly b?: number
  readonly payload: Uint8Array
}

export interface HelperReply {
  /** Error code of the file system (`ENOENT`); null: success. */
  readonly error: string | null
  readonly a: number
  readonly b: number
  readonly c: bigint
  readonly content: Buffer
}

/** The helper did not start, or ended: nothing is known about the request. */
export class HelperFault extends Error {
  override readonly name = 'HelperFault'
}

interface Waiting {
  resolve(reply: HelperReply): void
  reject(fault: Error): void
}

export class WorkHelper {
  readonly #child: ChildProcess
  readonly #waiting: Waiting[] = []
  #received: Buffer = Buffer.alloc(0)
  #timer: NodeJS.Timeout | null = null
  #fault: HelperFault | null = null

  private constructor(program: string, folder: FileHandle, user: Pick<TaskUser, 'uid' | 'gid'> | null) {
    const ids = [user?.uid ?? -1, user?.gid ?? -1].map(String)
    this.#child = spawn(program, ['--files', ...ids], {
      env: {},
      cwd: '/',
      stdio: ['pipe', 'pipe', 'ignore', folder.fd],
    })
    this.#child.once('error', (error) => this.#fail(`the file helper did not start: ${error.message}`))
    this.#child.once('close', () => this.#fail('the file helper ended'))
    this.#child.stdin?.on('error', () => undefined)
    this.#child.stdout?.on('data', (bytes: Buffer) => this.#receive(bytes))
    this.#child.unref()
  }

  /** Rejects with the file system's error when the folder cannot be found, or is a link. */
  static async open(
    program: string,
    folder: string,
    user: Pick<TaskUser, 'uid' | 'gid'> | null,
  ): Promise<WorkHelper> {
    const opened = await open(folder, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW)
    try {
      return new WorkHelper(program, opened, user)
    } finally {
      await opened.close()
    }
  }

  get isIdle(): boolean {
    return this.#waiting.length === 0
  }

  /** Requests are answered in order. Rejects with HelperFault. */
  request({ op, a = 0, b = 0, payload }: HelperRequest): Promise<HelperReply> {
    if (this.#fault !== null) return Promise.reject(this.#fault)
    const header = Buffer.alloc(HEADER_BYTES)
    header.writeUInt32LE(payload.byteLength, 0)
    header.writeUInt32LE(OPERATIONS[op], 4)
    header.writeBigUInt64LE(BigInt(a), 8)
    header.writeBigUInt64LE(BigInt(b), 16)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      this.#child.stdin?.write(Buffer.concat([header, payload]))
      this.#watch()
    })
  }

  /** Ends it; requests that are not answered fail. */
  end(): void {
    this.#fail('the file helper was ended')
  }

  #receive(bytes: Buffer): void {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes])
    while (this.#received.length >= REPLY_BYTES) {
      const from = this.#received
      const size = from.readUInt32LE(0)
      if (from.length < REPLY_BYTES + size) return
      const code = from.readInt32LE(4)
      this.#received = from.subarray(REPLY_BYTES + size)
      this.#waiting.shift()?.resolve({
        error: code === 0 ? null : (NAMES.get(code) ?? `errno ${code}`),
        a: Number(from.readBigUInt64LE(8)),
        b: Number(from.readBigInt64LE(16)),
        c: from.readBigUInt64LE(24),
        content: Buffer.from(from.subarray(REPLY_BYTES, REPLY_BYTES + size)),
      })
      this.#watch()
    }
  }

  /** Limits the time of the request at the front. */
  #watch(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer =
      this.#waiting.length === 0
        ? null
        : setTimeout(() => this.#fail('the file helper did not answer in time'), ANSWER_LIMIT_MS)
    this.#timer?.unref()
  }

  #fail(why: string): void {
    if (this.#fault === null) {
      this.#fault = new HelperFault(why)
      this.#child.kill('SIGKILL')
    }
    if (this.#timer !== null) clearTimeout(this.#timer)
    for (const { reject } of this.#waiting.splice(0)) reject(this.#fault)
  }
}

const NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(os.errno).map(([name, code]) => [code, name]),
)
