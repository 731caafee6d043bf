import { randomUUID } from 'node:crypto'
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { type ForeignCall, type ForeignFunction, loadDirectly, loadLibrary } from './foreign-library.ts'
import { arenaFault, HelperFault } from './helper-messages.ts'
import { type Extent, piecesOf } from './arena-extents.ts'

/** The first bytes of the file name it; the pieces follow, aligned to huge pages. */
const HEADER_BYTES = 2 * 1024 * 1024
const ID_BYTES = 36
const LOCK_TIMEOUT_MS = 10_000
const LOCK_POLL_MS = 20

/** mmap(2), flock(2), lseek(2), fallocate(2). Equal on every CPU architecture of Linux. */
const PROT_READ_WRITE = 3
const MAP_SHARED = 1
const LOCK_EXCLUSIVELY = 2 | 4
const SEEK_HOLE = 4
const PUNCH_HOLE = 3

/**
 * The memory of the swap arena: a file on tmpfs, so that it outlives this process. Pieces are mapped one by
 * one when they are first used.
 */
export class ArenaFile {
  /** Differs after the file was replaced. */
  readonly id: string
  readonly #path: string
  readonly #file: number
  readonly #pieceBytes: number
  readonly #libc: Libc
  readonly #addresses = new Map<number, bigint>()

  private constructor(path: string, file: number, pieceBytes: number, libc: Libc) {
    this.#path = path
    this.#file = file
    this.#pieceBytes = pieceBytes
    this.#libc = libc
    this.id = `${idIn(file)} ${pieceBytes}`
  }

  /** Waits for the end of an earlier user of the file. Rejects with HelperFault. */
  static async open(path: string, pieceBytes: number, ffiModule: string): Promise<ArenaFile> {
    const libc = await loadLibc(ffiModule)
    const file = openOwn(path)
    try {
      for (const began = performance.now(); libc.flock(file, LOCK_EXCLUSIVELY).result !== 0;) {
        if (performance.now() - began > LOCK_TIMEOUT_MS)
          throw arenaFault(`${path} is used by another process`)
        await new Promise((resolve) => setTimeout(resolve, LOCK_POLL_MS))
      }
      return new ArenaFile(path, file, pieceBytes, libc)
    } catch (cause) {
      closeSync(file)
      throw cause
    }
  }

  /** Number of pieces in the file. */
  get pieces(): number {
    return Math.max(0, Math.floor((fstatSync(this.#file).size - HEADER_BYTES) / this.#pieceBytes))
  }

  resize(pieces: number): void {
    ftruncateSync(this.#file, HEADER_BYTES + pieces * this.#pieceBytes)
  }

  /** True if all memory of the piece exists. */
  isWarm(piece: number): boolean {
    const from = this.#offset(piece)
    return this.#libc.lseek(this.#file, from, SEEK_HOLE).result >= from + this.#pieceBytes
  }

  /** Returns the address at which the piece is mapped in this process. */
  address(piece: number): bigint {
    const known = this.#addresses.get(piece)
    if (known !== undefined) return known
    const offset = this.#offset(piece)
    const { result } = this.#libc.mmap(
      null,
      this.#pieceBytes,
      PROT_READ_WRITE,
      MAP_SHARED,
      this.#file,
      offset,
    )
    if (result === -1) throw arenaFault(`${this.#path} cannot be mapped`)
    this.#addresses.set(piece, BigInt(result))
    return BigInt(result)
  }

  /** Takes the memory of the piece: without it, a later access would end this process. */
  async allocate(piece: number): Promise<void> {
    if ((await this.#libc.fallocate(this.#file, 0, this.#offset(piece), this.#pieceBytes)) !== 0)
      throw arenaFault(`${this.#path} cannot grow: its file system is full, or the host has no memory left`)
  }

  /** Overwrites the bytes; the memory stays. */
  async clear(extents: readonly Extent[]): Promise<void> {
    for (const piece of piecesOf(extents)) {
      if (this.isWarm(piece)) await this.#libc.memset(this.address(piece), 0, this.#pieceBytes)
      else await this.drop([{ first: piece, count: 1 }])
    }
  }

  /** Gives the memory back; the bytes are zero afterwards. For pieces that are not pinned. */
  async drop(extents: readonly Extent[]): Promise<void> {
    for (const { first, count } of extents) {
      const code = await this.#libc.fallocate(
        this.#file,
        PUNCH_HOLE,
        this.#offset(first),
        count * this.#pieceBytes,
      )
      if (code !== 0) throw arenaFault(`${this.#path} cannot be cleared`)
    }
  }

  #offset(piece: number): number {
    return HEADER_BYTES + piece * this.#pieceBytes
  }
}

interface Libc {
  readonly mmap: ForeignCall
  readonly flock: ForeignCall
  readonly lseek: ForeignCall
  readonly memset: ForeignFunction
  readonly fallocate: ForeignFunction
}

async function loadLibc(ffiModule: string): Promise<Libc> {
  const direct = await loadDirectly('libc.so.6', ffiModule)
  const library = await loadLibrary('libc.so.6', ffiModule)
  return {
    mmap: direct('mmap', 'long', ['void *', 'size_t', 'int', 'int', 'int', 'long']),
    flock: direct('flock', 'int', ['int', 'int']),
    lseek: direct('lseek', 'long', ['int', 'long', 'int']),
    memset: library.need('memset', ['void *', 'int', 'size_t']),
    fallocate: library.need('fallocate', ['int', 'int', 'long', 'long']),
  }
}

/** Any user may create files on /dev/shm: only a file of our own is used. */
function openOwn(path: string): number {
  let file: number
  try {
    file = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  } catch (error) {
    throw arenaFault(`${path} cannot be opened: ${(error as NodeJS.ErrnoException).code}`)
  }
  const facts = fstatSync(file)
  if (facts.isFile() && facts.uid === process.geteuid?.() && (facts.mode & 0o077) === 0) return file
  closeSync(file)
  throw new HelperFault({
    kind: 'arena',
    message: `${path} belongs to another user or is not private`,
    code: null,
  })
}

function idIn(file: number): string {
  const header = Buffer.alloc(ID_BYTES)
  readSync(file, header, 0, ID_BYTES, 0)
  const known = header.toString('latin1')
  if (/^[0-9a-f-]{36}$/.test(known)) return known
  const fresh = randomUUID()
  writeSync(file, fresh, 0, 'latin1')
  return fresh
}
