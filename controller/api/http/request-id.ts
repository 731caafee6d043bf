/**
 * The id under which a request stands in the answer and in the log: its own, when it brought one that can be
 * written anywhere as it is.
 */
import { randomFillSync } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

const SANE = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/
/** 128 bits, as many as a UUID has; written as 32 digits, which costs a tenth of what randomUUID does. */
const ID_BYTES = 16

const pool = Buffer.alloc(ID_BYTES * 256)
let used = pool.length

export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id']
  return typeof given === 'string' && SANE.test(given) ? given : newId()
}

function newId(): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  return pool.toString('hex', used, (used += ID_BYTES))
}
