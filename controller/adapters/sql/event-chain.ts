/**
 * The chain of events: each hash covers the previous one, so that changes, gaps and reordering are detected
 * (docs/events.md). The format is fixed: rows were written with it.
 */
import { hash } from 'node:crypto'
import type { EventRow } from './rows.ts'

/** Previous hash of the first event. */
export const GENESIS_HASH = '0'.repeat(64)

/**
 * Approximate bytes of the file per event besides its text: row, hash, indexes (135 measured in a new file).
 */
const EVENT_OVERHEAD_BYTES = 160

/** The hashed fields of an event in order: an array in JSON, `data` as the stored text. */
export function canonicalEvent(row: EventRow): string {
  return JSON.stringify(row)
}

/**
 * @param previous in hex, GENESIS_HASH for the first
 * @returns SHA-256, in hex, of: the previous hash in hex, a line feed, the canonical event; in UTF-8
 */
export function nextHash(previous: string, canonical: string): string {
  return hash('sha256', `${previous}\n${canonical}`, 'hex')
}

/** Approximate bytes of an event in the file. */
export function eventBytes(canonical: string): number {
  return Buffer.byteLength(canonical) + EVENT_OVERHEAD_BYTES
}
