/** Chooses the oldest rows of the history that a commit removes, so that each kind keeps to its limits. */
import { eventBytes, canonicalEvent, nextHash } from './event-chain.ts'
import type { AgeAllowance } from './retention-clock.ts'
import type { EventRow } from './rows.ts'

/** Limits; the first one reached applies. */
export interface EventRetention {
  readonly maxEvents: number
  /** Approximate bytes in the store. */
  readonly maxBytes: number | null
  readonly maxAgeMs: number | null
}

export interface DecisionRetention {
  readonly maxDecisions: number
  readonly maxAgeMs: number
}

/**
 * Besides as many as it adds, a commit removes at most this number of old rows of a kind: a lowered limit is
 * reached gradually.
 */
export const EXTRA_PRUNED = 1000

/** Both ends of the chain; hashes in hex. */
export interface ChainEnds {
  readonly headSeq: number
  readonly headHash: string
  readonly prunedSeq: number
  readonly prunedHash: string
  readonly keptBytes: number
}

/** An event that may be removed; `bytes` as `eventBytes`. */
export interface OldEvent {
  readonly seq: number
  readonly hash: string
  readonly bytes: number
}

export function oldEvent(row: EventRow, hash: string): OldEvent {
  return { seq: row[0], hash, bytes: eventBytes(canonicalEvent(row)) }
}

export interface LinkedEvents {
  readonly ends: ChainEnds
  /** Hash of each row, in hex. */
  readonly hashes: readonly string[]
}

/** Appends these events to the chain. */
export function linkEvents(ends: ChainEnds, rows: readonly EventRow[]): LinkedEvents {
  let { headSeq, headHash, keptBytes } = ends
  const hashes: string[] = []
  for (const row of rows) {
    const canonical = canonicalEvent(row)
    headHash = nextHash(headHash, canonical)
    headSeq = row[0]
    keptBytes += eventBytes(canonical)
    hashes.push(headHash)
  }
  return { ends: { ...ends, headSeq, headHash, keptBytes }, hashes }
}

export interface PrunedEvents {
  /** Unchanged if nothing is removed; otherwise all events up to `prunedSeq` are. */
  readonly ends: ChainEnds
  readonly removedByAge: number
}

/** Whether the oldest event would be removed now. */
export function isEventDue(ends: ChainEnds, retention: EventRetention, byAge: AgeAllowance): boolean {
  return (
    isSurplus(ends, retention, ends.prunedSeq + 1) || (byAge.rows > 0 && ends.prunedSeq + 1 <= byAge.upTo)
  )
}

/** @param oldest kept events in order; it may end early */
export function pruneEvents(
  ends: ChainEnds,
  oldest: Iterable<OldEvent>,
  retention: EventRetention,
  byAge: AgeAllowance,
): PrunedEvents {
  let after = ends
  let removedByAge = 0
  for (const { seq, hash, bytes } of oldest) {
    if (!isSurplus(after, retention, seq)) {
      if (seq > byAge.upTo || removedByAge >= byAge.rows) break
      removedByAge += 1
    }
    after = { ...after, prunedSeq: seq, prunedHash: hash, keptBytes: after.keptBytes - bytes }
  }
  return { ends: after, removedByAge }
}

function isSurplus({ headSeq, keptBytes }: ChainEnds, limits: EventRetention, seq: number): boolean {
  return headSeq - seq >= limits.maxEvents || (limits.maxBytes !== null && keptBytes > limits.maxBytes)
}

export interface PrunedDecisions {
  /** All decisions up to this number are removed; 0: none. */
  readonly upTo: number
  readonly kept: number
  readonly removedByAge: number
}

/** @param oldest numbers of kept decisions in order; it may end early */
export function pruneDecisions(
  kept: number,
  oldest: Iterable<number>,
  maxDecisions: number,
  byAge: AgeAllowance,
): PrunedDecisions {
  let [removed, removedByAge, upTo] = [0, 0, 0]
  for (const number of oldest) {
    if (kept - removed <= maxDecisions) {
      if (number > byAge.upTo || removedByAge >= byAge.rows) break
      removedByAge += 1
    }
    removed += 1
    upTo = number
  }
  return { upTo, kept: kept - removed, removedByAge }
}
