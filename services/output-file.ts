/**
 * Writes output files of commands. A file is written completely or not at all: it is written next to its
 * place, as NAME.new, and renamed. Anything but a regular file (/dev/null, a pipe) cannot be replaced and is
 * written to directly. Errors are one line that names the option.
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
 * Receives small pieces, written in blocks. Synchronous, because a run does not wait. Every method throws
 * UsageError.
 */
export class OutputFile {
  readonly #place: Place
  readonly #fail: (error: unknown) => never
  readonly #fd: number
  #text = ''
  #isOpen = true

  /** @param option names the file, or its folder, in error messages: `--out plan` */
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

  /** Ends the file. It is in its place once `publish` has returned. */
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

  /** Removes the new file; an existing file stays. */
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

/**
 * Checks the place before the work, so that an error is found early.
 * @throws UsageError
 */
export function checkPlace(option: string, path: string): void {
  try {
    const { draft } = placeOf(path)
    accessSync(draft === path ? path : `${dirname(draft)}/.`, constants.W_OK)
  } catch (error) {
    cannotBeWritten(option, error)
  }
}

/**
 * Creates the folder and its parents.
 * @throws UsageError
 */
export function makeFolder(option: string, folder: string, mode = 0o777): void {
  try {
    makeFolders(folder, mode)
  } catch (error) {
    throw new UsageError(`${option}: cannot be created: ${(error as Error).message}`, { cause: error })
  }
}

export function cannotBeWritten(option: string, error: unknown): never {
  // Only errors of the file system are the user's to fix.
  if (!(error instanceof Error) || !('syscall' in error)) throw error
  throw new UsageError(`${option}: cannot be written to: ${error.message}`, { cause: error })
}

interface Place {
  readonly path: string
  /** Equal to `path` for anything that cannot be replaced. */
  readonly draft: string
}

export function placeOf(path: string): Place {
  if (path === '') throw Object.assign(new Error('the name is empty'), { syscall: 'open' })
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return { path, draft: `${path}.new` }
  if (found.isDirectory()) throw Object.assign(new Error(`${path} is a folder`), { syscall: 'open' })
  if (!found.isFile()) return { path, draft: path }
  const real = realpathSync(path)
  return { path: real, draft: `${real}.new` }
}

/** Node's recursive mkdir never returns where a folder exists but none can be made in it (/proc). */
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
