/** Makes external text safe to print: it cannot move the cursor, change colours, or reorder letters. */

/** C0 and C1 controls, DEL, line and paragraph separators, and direction controls. */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g

/** Returns one line; unsafe characters become `\n`, `\x1b` or `\u202e`. */
export function visible(text: string): string {
  return text.replace(UNSAFE, escapeOf)
}

/** Keeps line feeds and tabs. Removes a carriage return before a line feed, escapes any other. */
export function visibleLines(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replace(UNSAFE, (character) =>
      character === '\n' || character === '\t' ? character : escapeOf(character),
    )
}

/** For JSON, or a text with such characters only in double quotes: the same value, safe to print. */
export function visibleJson(json: string): string {
  return json.replace(UNSAFE, (character) => (character === '\n' ? character : `\\u${hex(character, 4)}`))
}

function escapeOf(character: string): string {
  if (character === '\n') return '\\n'
  if (character === '\t') return '\\t'
  if (character === '\r') return '\\r'
  return character.charCodeAt(0) <= 0xff ? `\\x${hex(character, 2)}` : `\\u${hex(character, 4)}`
}

function hex(character: string, digits: number): string {
  return character.charCodeAt(0).toString(16).padStart(digits, '0')
}

export interface Palette {
  bold(text: string): string
  dim(text: string): string
  green(text: string): string
  yellow(text: string): string
  red(text: string): string
}

/**
 * Colours on a terminal that supports them; plain text if NO_COLOR is set, TERM is dumb, or the output is not
 * a terminal.
 */
export function paletteOf(
  stream: { readonly isTTY?: boolean },
  env: NodeJS.ProcessEnv = process.env,
): Palette {
  const isPlain = stream.isTTY !== true || (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb'
  const paint = (code: number) => (text: string) => (isPlain ? text : `\u001b[${code}m${text}\u001b[0m`)
  return { bold: paint(1), dim: paint(2), green: paint(32), yellow: paint(33), red: paint(31) }
}
