/**
 * What a command is told to write. A file is there whole or not at all: it is written beside its place, as
 * NAME.new, and renamed. What is no regular file (/dev/null, a pipe) cannot be replaced and is written into.
 * What cannot be written is told in one line, with the option that named it.
 */
import {
  accessSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { UsageError } from './exit-codes.ts'

const BLOCK_CHARACTERS = 262_144

/**
 * Grows by small pieces, written in blocks. Synchronous, because a run does not wait. Every method throws
 * UsageError.
 */
export class OutputFile {
  readonly #place: Place
  readonly #fail: (error: unknown) => never
  readonly #fd: number
  #text = ''
  #isOpen = true

  /** @param option names the file for whoever gave it, or the folder that it is in: `--out plan` */
  constructor(option: string, path: string, mode = 0o666) {
    this.#fail = (error) => cannotBeWritten(option, error)
    try {
      this.#place = placeOf(path)
      this.#fd = openSync(this.#place.draft, 'w', mode)
    } catch (error) {
      this.#fail(error)
    }
  }

  write(text: string): void {
    this.#text += text
    if (this.#text.length >= BLOCK_CHARACTERS) this.#flush()
  }

  /** Nothing more comes. It stands in its place when `publish` has returned. */
  close(): void {
    this.#flush()
    this.#close()
  }

  publish(): void {
    if (this.#isOpen) this.close()
    if (this.#place.draft === this.#place.path) return
    try {
      renameSync(this.#place.draft, this.#place.path)
    } catch (error) {
      this.discard()
      this.#fail(error)
    }
  }

  /** Nothing of it stays; what stood in its place stays there. */
  discard(): void {
    if (this.#isOpen) this.#close()
    if (this.#place.draft !== this.#place.path) rmSync(this.#place.draft, { force: true })
  }

  #flush(): void {
    try {
      writeFileSync(this.#fd, this.#text)
    } catch (error) {
      this.discard()
      this.#fail(error)
    }
    this.#text = ''
  }

  #close(): void {
    this.#isOpen = false
    closeSync(this.#fd)
  }
}

/** @throws UsageError */
export function writeOutput(option: string, path: string, text: string, mode?: number): void {
  const file = new OutputFile(option, path, mode)
  file.write(text)
  file.publish()
}

/** Said before the work, so that nobody waits for what cannot be written then. @throws UsageError */
export function checkPlace(option: string, path: string): void {
  try {
    const { draft } = placeOf(path)
    accessSync(draft === path ? path : `${dirname(draft)}/.`, constants.W_OK)
  } catch (error) {
    cannotBeWritten(option, error)
  }
}

/** The folder, and those above it. @throws UsageError */
export function makeFolder(option: string, folder: string, mode = 0o777): void {
  try {
    makeFolders(folder, mode)
  } catch (error) {
    throw new UsageError(`${option}: cannot be made: ${(error as Error).message}`, { cause: error })
  }
}

export function cannotBeWritten(option: string, error: unknown): never {
  // Only what the file system says is somebody's to put right.
  if (!(error instanceof Error) || !('syscall' in error)) throw error
  throw new UsageError(`${option}: cannot be written to: ${error.message}`, { cause: error })
}

interface Place {
  readonly path: string
  /** The same for what cannot be replaced. */
  readonly draft: string
}

export function placeOf(path: string): Place {
  if (path === '') throw Object.assign(new Error('it names no file'), { syscall: 'open' })
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return { path, draft: `${path}.new` }
  if (found.isDirectory()) throw Object.assign(new Error(`${path} is a folder`), { syscall: 'open' })
  if (!found.isFile()) return { path, draft: path }
  const real = realpathSync(path)
  return { path: real, draft: `${real}.new` }
}

/**
 * mkdir of Node, told to make parents too, goes on for ever where a folder may be there and none may be made
 * in it (/proc).
 */
function makeFolders(folder: string, mode: number): void {
  try {
    mkdirSync(folder, { mode })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true) return
    const parent = dirname(folder)
    if (code !== 'ENOENT' || parent === folder || statSync(parent, { throwIfNoEntry: false }) !== undefined)
      throw error
    makeFolders(parent, mode)
    mkdirSync(folder, { mode })
  }
}
