/** Files in the state folder of the agent, which are replaced as a whole. */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorText } from '../../protocol/error-text.ts'
import { StateFault } from '../state-fault.ts'

export class DurableFile {
  readonly #folder: string
  readonly #path: string

  /** @param folder exists */
  constructor(folder: string, name: string) {
    this.#folder = folder
    this.#path = join(folder, name)
  }

  /**
   * Returns what `parse` makes of the content; null if the file does not exist.
   * @throws StateFault
   */
  read<T>(parse: (content: unknown) => T): T | null {
    try {
      return parse(JSON.parse(readFileSync(this.#path, 'utf8')))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw new StateFault(`${this.#path}: ${errorText(error)}`, { cause: error })
    }
  }

  /** It is durable before this returns. */
  write(content: unknown): void {
    const next = `${this.#path}.new`
    const fd = openSync(next, 'w', 0o600)
    try {
      writeFileSync(fd, JSON.stringify(content))
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(next, this.#path)
    const folder = openSync(this.#folder, 'r')
    try {
      fsyncSync(folder)
    } finally {
      closeSync(folder)
    }
  }
}
