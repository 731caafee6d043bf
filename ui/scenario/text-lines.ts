/** Lines and columns of a text. Pure. */

/** How many lines are numbered: beyond this nobody writes by hand, and each is an element of the page. */
const MOST_LINES = 2_000

export function lineCount(text: string): number {
  return Math.min(MOST_LINES, text.split('\n').length)
}

/** Where a line and column, both from 1, begin in the text; its end where there is no such place. */
export function offsetOf(text: string, line: number, column: number): number {
  let at = 0
  for (let n = 1; n < line; n += 1) {
    const end = text.indexOf('\n', at)
    if (end === -1) return text.length
    at = end + 1
  }
  return Math.min(text.length, at + column - 1)
}
