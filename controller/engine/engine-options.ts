import type { DurationMs } from '../../protocol/units.ts'
import type { ConfigFields } from '../model/config.ts'
import type { Effect } from '../model/effect.ts'
import type { Event } from '../model/event.ts'
import type { OwnerLimits } from '../model/owner-limits.ts'
import type { VictimPolicy } from '../policy/swap/victims.ts'
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
  /** Lifetime of a task without a command unless it is renewed; null: unlimited. */
  readonly taskLeaseMs: DurationMs | null
  /** After a commit no other controller leads for this long. Default: as without a standby. */
  readonly leaseMs?: DurationMs
  /** Default: no limits. */
  readonly ownerLimits?: OwnerLimits
  /** Called with effects once they are durable. */
  readonly send: (effect: Effect) => void
  /** Called with every event once it is durable, in order. */
  readonly onEvents: (events: readonly Event[]) => void
  /** Called when paused placements continue: starts that waited may be sent. */
  readonly onResumed?: () => void
  /** Called when a node was answered: commands that waited for it may be sent. */
  readonly onAnswered?: (nodeId: string) => void
  /** The store failed: nothing is acknowledged anymore and the process must end (R10). */
  readonly onFault: (fault: unknown) => void
  /** Replaced only by simulations. Default: the rules. */
  readonly victimPolicy?: VictimPolicy
  /** Default: no tap. */
  readonly inputTap?: EngineInputTap
}
