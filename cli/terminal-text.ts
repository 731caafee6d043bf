/**
 * Text that came from elsewhere, made safe to print: nothing in it moves the cursor, changes colours, or
 * turns letters around.
 */

/** C0 and C1 controls, DEL, line and paragraph separators, and what changes the direction of writing. */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]/g

/** On one line; what cannot be shown stands as `\n`, `\x1b` or `\u202e`. */
export function visible(text: string): string {
  return text.replace(UNSAFE, escapeOf)
}

/** Several lines: line feeds and tabs stay. A carriage return before a line feed goes, any other is shown. */
export function visibleLines(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replace(UNSAFE, (character) =>
      character === '\n' || character === '\t' ? character : escapeOf(character),
    )
}

/**
 * In a text that is JSON, or in which such characters stand in double quotes only: the same value, and safe
 * to print.
 */
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
 * Colours on a terminal that takes them; plain text where NO_COLOR is set, TERM is dumb, or nobody watches.
 */
export function paletteOf(
  stream: { readonly isTTY?: boolean },
  env: NodeJS.ProcessEnv = process.env,
): Palette {
  const isPlain = stream.isTTY !== true || (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb'
  const paint = (code: number) => (text: string) => (isPlain ? text : `\u001b[${code}m${text}\u001b[0m`)
  return { bold: paint(1), dim: paint(2), green: paint(32), yellow: paint(33), red: paint(31) }
}
