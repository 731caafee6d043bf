/**
 * Leadership of one controller among several on one store. One contract suite
 * (test/support/leadership-contract.ts) runs against every implementation. Safety does not rest on it: the
 * store refuses the commit of a controller that was replaced. It only decides how soon another one leads.
 */
import type { DurationMs } from '../../protocol/units.ts'

/** Why a term began. */
export type TermReason =
  /** The store had no leader before. */
  | 'first'
  /** The leader before ended its term. */
  | 'resigned'
  /** The connection of the leader before has ended: its process or its host. */
  | 'disconnected'
  /** The leader before was silent for one lease. */
  | 'silent'

export interface Term {
  /** Higher than that of every earlier term. */
  readonly epoch: number
  readonly reason: TermReason
  /** Name of the leader before; null: there was none, or its name is not known. */
  readonly before: string | null
}

/** Why a term ended. */
export interface TermEnd {
  readonly reason: 'resigned' | 'replaced' | 'disconnected'
  /** One line. */
  readonly detail: string
}

/** @param to the next leader; null: any other */
export function resignation(to: string | null): TermEnd {
  return { reason: 'resigned', detail: to === null ? 'it resigned' : `it resigned in favour of ${to}` }
}

export const CLOSED: TermEnd = { reason: 'disconnected', detail: 'it was closed' }

export interface Leadership {
  /** Waits until this controller leads. Call it once, or again when a term has ended. */
  campaign(): Promise<Term>
  /** Epoch of the current term; 0 while it does not lead. */
  readonly epoch: number
  /** Resolves when the current term ends, as soon as this controller can know it. */
  readonly lost: Promise<TermEnd>
  /** Ends the current term. @param to only this one may take the next term, for one lease; null: any other */
  resign(to?: string | null): Promise<void>
  /** Stops campaigning, and ends a term. */
  close(): Promise<void>
}

export const MIN_LEASE_MS: DurationMs = 500
export const MAX_LEASE_MS: DurationMs = 60_000
export const DEFAULT_LEASE_MS: DurationMs = 2_000
/** A leader that commits nothing beats this many times per lease. */
export const BEATS_PER_LEASE = 4
