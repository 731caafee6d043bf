/** Yields the elements of a large JSON array one at a time: only the current one is in memory. */
import type { FileBytes } from '../file-bytes.ts'
import { TraceError } from '../trace-error.ts'

export interface JsonElement {
  /** Position of its start. */
  readonly line: number
  /** Not validated as JSON. */
  readonly text: string
}

/** 16 MiB. */
const MAX_ELEMENT_BYTES = 16_777_216

const BYTE = {
  lineFeed: 0x0a,
  space: 0x20,
  quote: 0x22,
  comma: 0x2c,
  backslash: 0x5c,
  openBracket: 0x5b,
  closeBracket: 0x5d,
  openBrace: 0x7b,
  closeBrace: 0x7d,
} as const

/**
 * Throws TraceError if the file is not an array, ends before its closing bracket, continues after it, or has
 * an element of more than 16 MiB.
 */
export async function* jsonElements(source: FileBytes): AsyncGenerator<JsonElement> {
  const { file } = source
  const splitter = new ArraySplitter(file)
  for await (const chunk of source.chunks) {
    for (const element of splitter.take(chunk)) yield element
  }
  splitter.end()
}

/** Tracks only brackets and strings: the text between two commas of the outermost array is an element. */
class ArraySplitter {
  readonly #file: string
  #line = 1
  #elementLine = 1
  /** 0 outside of the array, 1 in it, more inside its elements. */
  #depth = 0
  #isInString = false
  #isEscaped = false
  #hasEnded = false
  #hasBegun = false
  /** Parts of the current element; empty while only blanks were read. */
  #parts: Buffer[] = []
  #bytes = 0
  #hasContent = false

  constructor(file: string) {
    this.#file = file
  }

  *take(chunk: Buffer): Generator<JsonElement> {
    let from = 0
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i]!
      if (byte === BYTE.lineFeed) this.#line += 1
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false
        else if (byte === BYTE.backslash) this.#isEscaped = true
        else if (byte === BYTE.quote) this.#isInString = false
        continue
      }
      // Blanks and a byte order mark between tokens are ignored.
      if (byte <= BYTE.space) continue
      if (this.#depth === 0) {
        if (!this.#hasBegun && byte >= 0x80) continue
        this.#open(byte)
        from = i + 1
        continue
      }
      if (this.#depth === 1 && (byte === BYTE.comma || byte === BYTE.closeBracket)) {
        this.#keep(chunk.subarray(from, i))
        if (this.#hasContent) yield this.#element()
        else if (byte === BYTE.comma)
          throw new TraceError(
            { file: this.#file, line: this.#line },
            'is not JSON: a comma without a value before it',
          )
        from = i + 1
        if (byte === BYTE.comma) continue
        this.#depth = 0
        this.#hasEnded = true
        continue
      }
      if (!this.#hasContent) {
        this.#hasContent = true
        this.#elementLine = this.#line
      }
      if (byte === BYTE.quote) this.#isInString = true
      else if (byte === BYTE.openBrace || byte === BYTE.openBracket) this.#depth += 1
      else if (byte === BYTE.closeBrace || byte === BYTE.closeBracket) this.#depth -= 1
    }
    if (this.#depth > 0) this.#keep(chunk.subarray(from))
  }

  end(): void {
    if (this.#hasEnded) return
    throw new TraceError(
      { file: this.#file, line: this.#line },
      this.#hasBegun ? 'ends in the middle of its array' : 'is empty: needs a JSON array',
    )
  }

  #open(byte: number): void {
    if (this.#hasEnded)
      throw new TraceError({ file: this.#file, line: this.#line }, 'continues after its array')
    if (byte !== BYTE.openBracket)
      throw new TraceError({ file: this.#file, line: this.#line }, 'is not a JSON array')
    this.#hasBegun = true
    this.#depth = 1
  }

  /** A copy: the chunk may be reused. */
  #keep(part: Buffer): void {
    if (part.length === 0) return
    this.#parts.push(Buffer.from(part))
    this.#bytes += part.length
    if (this.#bytes <= MAX_ELEMENT_BYTES) return
    throw new TraceError(
      { file: this.#file, line: this.#elementLine },
      `an element is longer than ${MAX_ELEMENT_BYTES} bytes`,
    )
  }

  #element(): JsonElement {
    const text = (this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts)).toString('utf8')
    this.#parts = []
    this.#bytes = 0
    this.#hasContent = false
    return { line: this.#elementLine, text }
  }
}
