/**
 * The end of one stream of a task's output, and what follows. It is read piece by piece: the controller reads
 * it from the GPU server on request.
 */
import type { LogBody } from '../../../../controller/api/tasks/log-schema.ts'
import { bytesOf } from '../../../format/bytes.ts'
import { LogLines, type LogLine } from './log-lines.ts'

export type LogStreamName = LogBody['stream']
export type ReadPiece = (query: {
  readonly stream: LogStreamName
  readonly offset: number
  readonly max_bytes: number
}) => Promise<LogBody>

/** Size of one request. */
export const PIECE_BYTES = 131_072
/** Older output is dropped from the page, and can be loaded again. */
const MAX_KEPT_BYTES = 4 * 1_048_576
/** After this many pieces the page is updated before more is read. */
const MAX_PIECES = 8
/** Behind every output: the answer names the end. */
const END_OFFSET = 999_999_999_999_999

interface Piece {
  readonly at: number
  readonly bytes: Uint8Array
}

export class LogReader {
  readonly #stream: LogStreamName
  readonly #read: ReadPiece
  #pieces: Piece[] = []
  #lines = new LogLines()
  #decoder = new TextDecoder()
  #attempt: number | null = null
  #next = 0
  /** Everything was written and read. */
  isEnded = false
  /** Bytes between two pieces that the GPU server had dropped before they were read. */
  missedBytes = 0

  constructor(stream: LogStreamName, read: ReadPiece) {
    this.#stream = stream
    this.#read = read
  }

  get lines(): readonly LogLine[] {
    return this.#lines.lines
  }

  /** Offset of the first byte that is shown. */
  get start(): number {
    return this.#pieces[0]?.at ?? this.#next
  }

  /** Reads the end first, later what was written since. @returns true if something has changed */
  async readOn(): Promise<boolean> {
    if (this.#attempt === null) await this.#find()
    let hasChanged = false
    for (let count = 0; count < MAX_PIECES; count++) {
      const piece = await this.#ask(this.#next, PIECE_BYTES)
      if (piece.attempt !== this.#attempt) {
        this.#attempt = null
        return this.readOn().then(() => true)
      }
      this.isEnded = piece.is_ended
      if (piece.data === '') return hasChanged
      this.#append(piece)
      hasChanged = true
    }
    return hasChanged
  }

  /** Reads the piece before the first. @returns false if nothing earlier is kept */
  async readEarlier(): Promise<boolean> {
    const { start } = this
    const from = Math.max(0, start - PIECE_BYTES)
    if (start === 0) return false
    const piece = await this.#ask(from, start - from)
    const bytes = bytesOf(piece.data)
    if (piece.attempt !== this.#attempt || piece.offset + bytes.length !== start || bytes.length === 0)
      return false
    this.#pieces = [{ at: piece.offset, bytes }, ...this.#pieces]
    this.#parseAgain()
    return true
  }

  async #find(): Promise<void> {
    const end = await this.#ask(END_OFFSET, 1)
    this.#forget(end.attempt)
    this.#next = Math.max(0, end.next_offset - PIECE_BYTES)
  }

  #ask(offset: number, max: number): Promise<LogBody> {
    return this.#read({ stream: this.#stream, offset, max_bytes: max })
  }

  #append(piece: LogBody): void {
    const bytes = bytesOf(piece.data)
    if (this.#pieces.length > 0) this.missedBytes += Math.max(0, piece.offset - this.#next)
    this.#next = piece.next_offset
    const isFirst = this.#pieces.length === 0
    this.#pieces.push({ at: piece.offset, bytes })
    const kept = this.#pieces.reduce((sum, each) => sum + each.bytes.length, 0)
    if (isFirst || kept > MAX_KEPT_BYTES) {
      if (kept > MAX_KEPT_BYTES) this.#pieces = this.#pieces.slice(Math.ceil(this.#pieces.length / 2))
      this.#parseAgain()
    } else this.#lines.push(this.#decoder.decode(bytes, { stream: true }))
  }

  /** A piece that begins in the middle begins with a part of a line, which is not shown. */
  #parseAgain(): void {
    this.#lines = new LogLines()
    this.#decoder = new TextDecoder()
    this.#pieces.forEach(({ at, bytes }, index) => {
      const text = this.#decoder.decode(bytes, { stream: true })
      const isPart = index === 0 && at > 0
      this.#lines.push(isPart ? text.slice(text.indexOf('\n') + 1) : text)
    })
  }

  #forget(attempt: number): void {
    this.#attempt = attempt
    this.#pieces = []
    this.#lines = new LogLines()
    this.#decoder = new TextDecoder()
    this.#next = 0
    this.missedBytes = 0
    this.isEnded = false
  }
}
