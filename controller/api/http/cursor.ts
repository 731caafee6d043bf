/** Cursors are opaque to clients: what is in them may change between versions. */
import { invalidField, type ApiProblem } from './errors.ts'

export function writeCursor(position: number): string {
  return Buffer.from(`p${position}`).toString('base64url')
}

/** @throws ApiProblem when the text is not a valid cursor. */
export function readCursor(cursor: string): number {
  const match = /^p(\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'))
  if (match === null) throw invalidCursor()
  return Number(match[1])
}

/**
 * The longest cursor with parts: a name of 200 characters, each of up to 6 bytes in JSON and 4 more for 3 in
 * base64.
 */
export const PARTS_CURSOR_LIMIT = 2000

export function writeCursorParts(parts: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(parts)).toString('base64url')
}

/** Empty when the text is not a cursor. */
export function readCursorParts(cursor: string): readonly unknown[] {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
    return Array.isArray(parts) ? parts : []
  } catch {
    return []
  }
}

export function invalidCursor(): ApiProblem {
  return invalidField(
    '/cursor',
    'query parameter cursor must be the next_cursor of a response to the same query',
  )
}
