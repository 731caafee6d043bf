/** Lines and columns of a text. Pure. */

/**
 * Maximum number of numbered lines: hand-written texts are shorter, and each number is an element of the
 * page.
 */
const MAX_LINES = 2_000

export function lineCount(text: string): number {
  return Math.min(MAX_LINES, text.split('\n').length)
}

/** Offset of a line and column, both from 1; the end of the text if there is no such position. */
export function offsetOf(text: string, line: number, column: number): number {
  let at = 0
  for (let n = 1; n < line; n += 1) {
    const end = text.indexOf('\n', at)
    if (end === -1) return text.length
    at = end + 1
  }
  return Math.min(text.length, at + column - 1)
}
