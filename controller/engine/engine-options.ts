import type { DurationMs } from '../../protocol/units.ts'
import type { ConfigFields } from '../domain/config.ts'
import type { Effect } from '../domain/effect.ts'
import type { Event } from '../domain/event.ts'
import type { OwnerLimits } from '../domain/owner-limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { Random } from '../ports/random.ts'
import type { Store } from '../ports/store.ts'
import type { EngineInputTap } from './input-tap.ts'

export interface EngineOptions {
  readonly clock: Clock
  readonly random: Random
  readonly store: Store
  /** The configuration while nothing is persisted. */
  readonly initialConfig: Partial<ConfigFields>
  /** How long a task without a command lives unless it is kept alive; null: for ever. */
  readonly taskLeaseMs: DurationMs | null
  /** Default: none. */
  readonly ownerLimits?: OwnerLimits
  /** Called with effects once they are durable. */
  readonly send: (effect: Effect) => void
  /** Called with every event once it is durable, in order. */
  readonly onEvents: (events: readonly Event[]) => void
  /** Placements, which were paused, go on: starts that waited may leave. */
  readonly onResumed?: () => void
  /** The store failed: nothing is acknowledged any more, the process must end (R10). */
  readonly onFault: (fault: unknown) => void
  /** Default: nobody. */
  readonly inputTap?: EngineInputTap
}
