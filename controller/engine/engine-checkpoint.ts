import type { Instant } from '../../protocol/units.ts'
import type { TimerId } from '../ports/clock.ts'
import type { Snapshot } from '../state/snapshot/snapshot.ts'
import type { TransactionSnapshot } from '../state/snapshot/transaction-snapshot.ts'

/** The state of an engine between two inputs, as JSON values. */
export interface EngineCheckpoint {
  readonly epoch: number
  readonly process: string
  readonly durableEventSeq: number
  readonly commits: number
  readonly renewedAt: Instant
  readonly committedAt: Instant
  readonly nextEventSeq: number
  readonly nextDecision: number
  /** The planned cycle; null: none. */
  readonly cycle: TimerId | null
  readonly wake: { readonly at: Instant; readonly timer: TimerId } | null
  readonly transaction: TransactionSnapshot
  /** In progress as commit number `commits`. */
  readonly committing: TransactionSnapshot | null
  /** Why the store accepts nothing anymore. */
  readonly fault: string | null
  readonly cluster: Snapshot
}
