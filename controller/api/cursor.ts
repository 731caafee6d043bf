/** Cursors are opaque to clients: what is in them may change between versions. */
import { invalidField } from './errors.ts'

export function writeCursor(position: number): string {
  return Buffer.from(`p${position}`).toString('base64url')
}

/** @throws ApiProblem when the text is none of ours. */
export function readCursor(cursor: string): number {
  const match = /^p(\d{1,15})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'))
  if (match === null) throw invalidField('/cursor', 'query parameter cursor must be the next_cursor of an answer to the same query')
  return Number(match[1])
}
