/** A text file that grows by small pieces, written in blocks. Synchronous, because a run does not wait. */
import { closeSync, openSync, writeFileSync } from 'node:fs'

const BLOCK_CHARACTERS = 262_144

export class TextFile {
  readonly #fd: number
  #text = ''

  /** Replaces a file of that name. Throws what the file system throws. */
  constructor(path: string) {
    this.#fd = openSync(path, 'w')
  }

  write(text: string): void {
    this.#text += text
    if (this.#text.length >= BLOCK_CHARACTERS) this.#flush()
  }

  close(): void {
    this.#flush()
    closeSync(this.#fd)
  }

  #flush(): void {
    writeFileSync(this.#fd, this.#text)
    this.#text = ''
  }
}
