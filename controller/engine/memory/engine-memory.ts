import type { Instant } from '../../../protocol/units.ts'
import type { TimerMark } from '../../ports/clock.ts'
import type { ClusterMemory } from './cluster-memory.ts'
import type { TurnMemory } from './turn-memory.ts'

/** What an engine remembers between two inputs, as JSON values. */
export interface EngineMemory {
  readonly epoch: number
  readonly process: string
  readonly durableEventSeq: number
  readonly commits: number
  readonly renewedAt: Instant
  readonly committedAt: Instant
  readonly nextEventSeq: number
  readonly nextDecision: number
  /** The planned cycle; null: none is. */
  readonly cycle: TimerMark | null
  readonly wake: { readonly at: Instant; readonly timer: TimerMark } | null
  readonly turn: TurnMemory
  /** On its way to the store as commit `commits`. */
  readonly committing: TurnMemory | null
  /** Why the store takes nothing any more. */
  readonly fault: string | null
  readonly cluster: ClusterMemory
}
