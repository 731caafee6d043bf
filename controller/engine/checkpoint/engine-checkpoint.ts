import type { Instant } from '../../../protocol/units.ts'
import type { TimerId } from '../../ports/clock.ts'
import type { ClusterCheckpoint } from './cluster-checkpoint.ts'
import type { TransactionCheckpoint } from './transaction-checkpoint.ts'

/** What an engine remembers between two inputs, as JSON values. */
export interface EngineCheckpoint {
  readonly epoch: number
  readonly process: string
  readonly durableEventSeq: number
  readonly commits: number
  readonly renewedAt: Instant
  readonly committedAt: Instant
  readonly nextEventSeq: number
  readonly nextDecision: number
  /** The planned cycle; null: none is. */
  readonly cycle: TimerId | null
  readonly wake: { readonly at: Instant; readonly timer: TimerId } | null
  readonly transaction: TransactionCheckpoint
  /** On its way to the store as commit `commits`. */
  readonly committing: TransactionCheckpoint | null
  /** Why the store takes nothing any more. */
  readonly fault: string | null
  readonly cluster: ClusterCheckpoint
}
