/**
 * JSON as RFC 8259 has it, read strictly: a key may stand once in an object, `__proto__` never, nesting ends
 * at MAX_DEPTH, and text is well-formed Unicode. JSON.parse keeps the last of two equal keys and says
 * nothing, so a client's mistake would be stored unseen.
 */

/** How deep arrays and objects may nest. The deepest request of this API needs 3. */
export const MAX_DEPTH = 32

/**
 * How many fields all objects of a text may have together. The largest request of this API has some hundred.
 */
export const MAX_FIELDS = 10_000

/**
 * Where the text stops being JSON that this API reads. Line and column count from 1, in UTF-16 code units.
 */
export class JsonFlaw extends Error {
  override readonly name = 'JsonFlaw'
  readonly offset: number
  readonly line: number
  readonly column: number

  constructor(text: string, offset: number, what: string) {
    const before = text.slice(0, offset).split('\n')
    const line = before.length
    const column = (before.at(-1)?.length ?? 0) + 1
    super(`${what} at line ${line}, column ${column}`)
    this.offset = offset
    this.line = line
    this.column = column
  }
}

/** @throws JsonFlaw at the first character that does not fit. */
export function parseStrictJson(text: string): unknown {
  return new Reader(text).document()
}

const BLANK = /[\t\n\r ]*/y
const PLAIN_TEXT = /[^"\\\u0000-\u001f]*/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

class Reader {
  readonly #text: string
  #at = 0
  #fields = 0

  constructor(text: string) {
    this.#text = text
  }

  document(): unknown {
    this.#skip(BLANK)
    const value = this.#value(0)
    this.#skip(BLANK)
    if (this.#at < this.#text.length) throw this.#flaw('expected the end of the body')
    return value
  }

  #value(depth: number): unknown {
    const first = this.#text.charAt(this.#at)
    switch (first) {
      case '{':
        return this.#object(depth + 1)
      case '[':
        return this.#array(depth + 1)
      case '"':
        return this.#string()
      case 't':
        return this.#word('true', true)
      case 'f':
        return this.#word('false', false)
      case 'n':
        return this.#word('null', null)
      default:
        return this.#number()
    }
  }

  #object(depth: number): Record<string, unknown> {
    this.#enter(depth)
    const object: Record<string, unknown> = {}
    if (this.#takes('}')) return object
    do {
      this.#skip(BLANK)
      const key = this.#key(object)
      this.#expect(':')
      this.#skip(BLANK)
      object[key] = this.#value(depth)
      this.#skip(BLANK)
    } while (this.#takes(','))
    this.#expect('}')
    return object
  }

  #key(object: object): string {
    const start = this.#at
    if (this.#text.charAt(start) !== '"') throw this.#flaw('expected a field name in double quotes')
    this.#fields += 1
    if (this.#fields > MAX_FIELDS) throw this.#flaw(`more than ${MAX_FIELDS} fields`, start)
    const key = this.#string()
    if (key === '__proto__') throw this.#flaw('the field name "__proto__" is not allowed', start)
    if (Object.hasOwn(object, key))
      throw this.#flaw(`the field ${JSON.stringify(key.slice(0, 64))} appears twice in one object`, start)
    this.#skip(BLANK)
    return key
  }

  #array(depth: number): unknown[] {
    this.#enter(depth)
    const items: unknown[] = []
    if (this.#takes(']')) return items
    do {
      this.#skip(BLANK)
      items.push(this.#value(depth))
      this.#skip(BLANK)
    } while (this.#takes(','))
    this.#expect(']')
    return items
  }

  #string(): string {
    const start = this.#at
    this.#at += 1
    this.#skip(PLAIN_TEXT)
    let isEscaped = false
    while (this.#text.charAt(this.#at) !== '"') {
      if (this.#at >= this.#text.length) throw this.#flaw('a string has no closing quote', start)
      if (!this.#skip(ESCAPE)) throw this.#flaw('a string contains a control character or an unknown escape')
      this.#skip(PLAIN_TEXT)
      isEscaped = true
    }
    this.#at += 1
    const text = isEscaped
      ? (JSON.parse(this.#text.slice(start, this.#at)) as string)
      : this.#text.slice(start + 1, this.#at - 1)
    if (!text.isWellFormed()) throw this.#flaw('a string contains half of a surrogate pair', start)
    return text
  }

  #number(): number {
    const start = this.#at
    if (start >= this.#text.length) throw this.#flaw('expected a value, found the end of the body')
    if (!this.#skip(NUMBER)) throw this.#flaw('expected a value')
    return Number(this.#text.slice(start, this.#at))
  }

  #word<T>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) throw this.#flaw(`expected ${word}`)
    this.#at += word.length
    return value
  }

  #enter(depth: number): void {
    if (depth > MAX_DEPTH) throw this.#flaw(`nesting is deeper than ${MAX_DEPTH}`)
    this.#at += 1
    this.#skip(BLANK)
  }

  #takes(sign: string): boolean {
    if (this.#text.charAt(this.#at) !== sign) return false
    this.#at += 1
    return true
  }

  #expect(sign: string): void {
    if (!this.#takes(sign)) throw this.#flaw(`expected ${sign}`)
  }

  /** Moves over what the pattern matches here; answers whether that was anything. */
  #skip(pattern: RegExp): boolean {
    const start = this.#at
    pattern.lastIndex = start
    if (pattern.test(this.#text)) this.#at = pattern.lastIndex
    return this.#at > start
  }

  #flaw(what: string, offset: number = this.#at): JsonFlaw {
    return new JsonFlaw(this.#text, offset, what)
  }
}
