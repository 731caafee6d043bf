/**
 * Writes plain values as JSON into a buffer, byte by byte, exactly as JSON.stringify would: the fast path for
 * usual lines of a journal. It gives up on anything else: text beyond ASCII or with escapes, numbers that are
 * not whole, more than fits.
 */
import type { EventData, EventValue } from '../../controller/model/event.ts'

const QUOTE = 34
const COMMA = 44
const MINUS = 45
const ZERO = 48
const COLON = 58
const OPEN_LIST = 91
const BACKSLASH = 92
const CLOSE_LIST = 93
const OPEN_RECORD = 123
const CLOSE_RECORD = 125
const SPACE = 32
const DELETE = 127
const LONGEST_NUMBER = 17
const MILLION = 1_000_000

export class AsciiJson {
  readonly #bytes: Uint8Array
  /** Position of the next byte. */
  at = 0
  #end = 0
  /** Everything since `begin` was plain and fitted. */
  isPlain = true

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /** From `start` to before `end`. */
  begin(at: number, end: number): void {
    this.at = at
    this.#end = end
    this.isPlain = true
  }

  /** Writes the text unchanged, without checking it. */
  raw(text: string): void {
    if (!this.#hasRoom(text.length)) return
    const bytes = this.#bytes
    let at = this.at
    for (let i = 0; i < text.length; i++) bytes[at++] = text.charCodeAt(i)
    this.at = at
  }

  text(text: string): void {
    if (!this.#hasRoom(text.length + 2)) return
    const bytes = this.#bytes
    let at = this.at
    bytes[at++] = QUOTE
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      if (code < SPACE || code >= DELETE || code === QUOTE || code === BACKSLASH) {
        this.isPlain = false
        return
      }
      bytes[at++] = code
    }
    bytes[at++] = QUOTE
    this.at = at
  }

  textOrNull(text: string | null): void {
    if (text === null) this.raw('null')
    else this.text(text)
  }

  whole(number: number): void {
    if (!Number.isSafeInteger(number)) this.isPlain = false
    if (!this.isPlain || !this.#hasRoom(LONGEST_NUMBER)) return
    if (number < 0) this.#byte(MINUS)
    this.#digits(Math.abs(number))
  }

  /** Six digits at a time, so that the digits are computed with small integers. */
  #digits(size: number): void {
    if (size >= MILLION) {
      const millions = Math.floor(size / MILLION)
      this.#digits(millions)
      this.#lastDigits(size - millions * MILLION, 6)
      return
    }
    let count = 1
    for (let limit = 10; limit <= size; limit *= 10) count += 1
    this.#lastDigits(size, count)
  }

  /** Writes this number of digits, with leading zeros, of a number below a million. */
  #lastDigits(size: number, count: number): void {
    let rest = size | 0
    for (let place = this.at + count - 1; place >= this.at; place--) {
      const left = (rest / 10) | 0
      this.#bytes[place] = ZERO + (rest - 10 * left)
      rest = left
    }
    this.at += count
  }

  record(data: EventData): void {
    this.#byte(OPEN_RECORD)
    let isFirst = true
    // A plain object: its own keys, in the order of Object.keys, without a list of them.
    for (const key in data) {
      const value = data[key]
      if (value === undefined) continue
      if (!isFirst) this.#byte(COMMA)
      isFirst = false
      this.text(key)
      this.#byte(COLON)
      this.#value(value)
    }
    this.#byte(CLOSE_RECORD)
  }

  #value(value: EventValue): void {
    if (typeof value === 'string') this.text(value)
    else if (typeof value === 'number') this.whole(value)
    else if (value === null || typeof value === 'boolean') this.raw(String(value))
    else if (isList(value)) this.#list(value)
    else this.record(value)
  }

  #list(values: readonly EventValue[]): void {
    this.#byte(OPEN_LIST)
    for (let i = 0; i < values.length && this.isPlain; i++) {
      if (i > 0) this.#byte(COMMA)
      this.#value(values[i] as EventValue)
    }
    this.#byte(CLOSE_LIST)
  }

  #byte(byte: number): void {
    if (this.#hasRoom(1)) this.#bytes[this.at++] = byte
  }

  #hasRoom(bytes: number): boolean {
    if (this.at + bytes <= this.#end) return this.isPlain
    this.isPlain = false
    return false
  }
}

function isList(value: EventValue): value is readonly EventValue[] {
  return Array.isArray(value)
}
