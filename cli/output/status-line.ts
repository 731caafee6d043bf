/** One line with the current status, only on a terminal, overwritten by the next. */
import { visible } from './terminal-text.ts'

const CLEAR_LINE = '\r\u001b[K'

export class StatusLine {
  readonly #stream: NodeJS.WriteStream
  #shown = ''

  constructor(stream: NodeJS.WriteStream = process.stderr) {
    this.#stream = stream
  }

  /** Replaces the line; cuts it to the width of the terminal. */
  show(text: string): void {
    const line = visible(text).slice(0, Math.max(20, (this.#stream.columns ?? 80) - 1))
    if (!this.#stream.isTTY || line === this.#shown) return
    this.#stream.write(`${CLEAR_LINE}${line}`)
    this.#shown = line
  }

  /** Clears the line for other output. */
  clear(): void {
    if (this.#shown !== '') this.#stream.write(CLEAR_LINE)
    this.#shown = ''
  }

  /** Prints a line that stays, on a terminal or not. */
  print(text: string): void {
    this.clear()
    this.#stream.write(`headroom: ${visible(text)}\n`)
  }
}
