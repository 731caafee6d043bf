/** One line that says what is going on, on a terminal only, and overwritten by the next. */
import { visible } from '../terminal-text.ts'

const CLEAR_LINE = '\r\u001b[K'

export class StatusLine {
  readonly #stream: NodeJS.WriteStream
  #shown = ''

  constructor(stream: NodeJS.WriteStream = process.stderr) {
    this.#stream = stream
  }

  /** Replaces what stood there; longer than the terminal is wide is cut. */
  show(text: string): void {
    const line = visible(text).slice(0, Math.max(20, (this.#stream.columns ?? 80) - 1))
    if (!this.#stream.isTTY || line === this.#shown) return
    this.#stream.write(`${CLEAR_LINE}${line}`)
    this.#shown = line
  }

  /** Makes room for what others print. */
  clear(): void {
    if (this.#shown !== '') this.#stream.write(CLEAR_LINE)
    this.#shown = ''
  }

  /** A line that stays, on a terminal or not. */
  print(text: string): void {
    this.clear()
    this.#stream.write(`headroom: ${visible(text)}\n`)
  }
}
