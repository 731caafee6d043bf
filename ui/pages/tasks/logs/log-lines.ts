/**
 * Output of a task as lines of coloured text. Of the escape sequences of terminals only colours and weights
 * apply; the cursor does not move. A carriage return starts its line again, so that a progress bar shows its
 * last state. Pure.
 */

export interface LogStyle {
  /** One of the 16 colours of terminals; null: the colour of the text. */
  readonly colour: number | null
  readonly isBold: boolean
  readonly isUnderlined: boolean
}

export interface LogSpan extends LogStyle {
  readonly text: string
}

export interface LogLine {
  /** Without styles, for the search. */
  readonly text: string
  readonly spans: readonly LogSpan[]
}

/** Longer lines are cut. */
export const MAX_LINE_CHARACTERS = 10_000
/** The oldest are dropped. */
const MAX_LINES = 50_000
/** An escape sequence that is not complete by then is text. */
const MAX_REST_CHARACTERS = 4_096

const PLAIN: LogStyle = { colour: null, isBold: false, isUnderlined: false }
const TOKEN = new RegExp(
  '\\x1b\\[([0-9;:?<=>]*)[ -/]*([@-~])' + // a control sequence, such as a colour
    '|\\x1b\\][^\\x07\\x1b]*(?:\\x07|\\x1b\\\\)' + // a command to the terminal, such as its title
    '|\\x1b[ -~]?|\\r|\\n|[^\\x1b\\r\\n]+',
  'g',
)
const INCOMPLETE = /\x1b(\[[0-9;:?<=>]*[ -/]*|\][^\x07\x1b]*\x1b?)?$/
/** Everything that would be invisible, or would change the order of the text around it. */
const INVISIBLE = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

export class LogLines {
  #lines: LogLine[] = []
  #spans: LogSpan[] = []
  #length = 0
  #style = PLAIN
  #isReturned = false
  #rest = ''

  /** All lines; the last one may grow. */
  get lines(): readonly LogLine[] {
    return this.#spans.length === 0 ? this.#lines : [...this.#lines, lineOf(this.#spans)]
  }

  push(text: string): void {
    let all = this.#rest + text
    this.#rest = ''
    const [incomplete = ''] = INCOMPLETE.exec(all.slice(-MAX_REST_CHARACTERS)) ?? []
    if (incomplete !== '') {
      this.#rest = incomplete
      all = all.slice(0, -incomplete.length)
    }
    for (const [token, parameters, final] of all.matchAll(TOKEN)) {
      if (token === '\n') this.#endLine()
      else if (token === '\r') this.#isReturned = true
      else if (!token.startsWith('\x1b')) this.#add(token)
      else if (final === 'm') this.#style = styleAfter(this.#style, parameters ?? '')
    }
    if (this.#lines.length > MAX_LINES) this.#lines = this.#lines.slice(-MAX_LINES)
  }

  #add(text: string): void {
    if (this.#isReturned) {
      this.#spans = []
      this.#length = 0
      this.#isReturned = false
    }
    const shown = text.slice(0, Math.max(0, MAX_LINE_CHARACTERS - this.#length)).replace(INVISIBLE, nameOf)
    this.#length += text.length
    if (shown !== '') this.#spans.push({ ...this.#style, text: shown })
  }

  #endLine(): void {
    this.#lines.push(lineOf(this.#spans))
    this.#spans = []
    this.#length = 0
    this.#isReturned = false
  }
}

function lineOf(spans: readonly LogSpan[]): LogLine {
  return { text: spans.map(({ text }) => text).join(''), spans }
}

function nameOf(character: string): string {
  const code = character.charCodeAt(0)
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return `[U+${code.toString(16).toUpperCase().padStart(4, '0')}]`
}

/** Applies "select graphic rendition" (ECMA-48, 8.3.117). Backgrounds and other colours are ignored. */
function styleAfter(before: LogStyle, parameters: string): LogStyle {
  const codes = (parameters === '' ? '0' : parameters).split(/[;:]/).map(Number)
  let style = before
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] as number
    if (code === 38 || code === 48) {
      const isIndex = codes[at + 1] === 5
      const index = codes[at + 2] ?? 16
      if (code === 38) style = { ...style, colour: isIndex && index < 16 ? index : null }
      at += isIndex ? 2 : 4
    } else style = styleWith(style, code)
  }
  return style
}

function styleWith(style: LogStyle, code: number): LogStyle {
  if (code === 0) return PLAIN
  if (code === 1 || code === 22) return { ...style, isBold: code === 1 }
  if (code === 4 || code === 24) return { ...style, isUnderlined: code === 4 }
  if (code >= 30 && code <= 37) return { ...style, colour: code - 30 }
  if (code >= 90 && code <= 97) return { ...style, colour: code - 90 + 8 }
  return code === 39 ? { ...style, colour: null } : style
}
