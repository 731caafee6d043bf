/**
 * The chain of events: the hash of each covers the one before, so that a change, a gap or another order shows
 * (docs/events.md). The form is fixed: rows were written with it.
 */
import { hash } from 'node:crypto'
import type { EventRow } from './rows.ts'

/** What the first event of all hangs on. */
export const GENESIS_HASH = '0'.repeat(64)

/**
 * Besides its text an event takes so many bytes of the file, about: row, hash, indexes (135 measured in a
 * fresh file).
 */
const EVENT_OVERHEAD_BYTES = 160

/**
 * What is hashed of an event, and the order of its fields: an array in JSON, `data` as the text that is
 * stored.
 */
export function canonicalEvent(row: EventRow): string {
  return JSON.stringify(row)
}

/**
 * @param previous in hex, GENESIS_HASH for the first.
 * @returns SHA-256, in hex, of: the previous hash in hex, a line feed, the canonical event; in UTF-8.
 */
export function nextHash(previous: string, canonical: string): string {
  return hash('sha256', `${previous}\n${canonical}`, 'hex')
}

/** What an event takes of the file, about. */
export function eventBytes(canonical: string): number {
  return Buffer.byteLength(canonical) + EVENT_OVERHEAD_BYTES
}
