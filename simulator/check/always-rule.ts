import type { Event } from '../../controller/model/event.ts'
import type { LostHistory } from '../world/store-history.ts'
import type { Observed } from './observed.ts'
import type { Shadow } from './shadow.ts'
import type { NodeMessages } from './node-messages.ts'
import type { Report } from './violation.ts'

/**
 * A rule that holds all the time. Calls come in the order of the methods, `afterStep` once for all batches of
 * a step of the clock.
 */
export interface AlwaysRule {
  /** Called before the shadow state includes the event. */
  before?(event: Event): void
  /** Called when the shadow state includes the event. */
  after?(event: Event): void
  /** Called when every action of the step is complete, with the nodes and tasks that its events named. */
  afterStep?(nodeIds: ReadonlySet<string>, taskIds: ReadonlySet<string>): void
  /** Called after every step, with or without events. */
  afterEveryStep?(): void
  /** The store has lost a part of its history; the shadow state holds the rest. */
  setBack?(lost: LostHistory): void
  /** The run is over. */
  finish?(): void
}

export interface RuleContext {
  readonly shadow: Shadow
  readonly observed: Observed
  /** Null in a world without faults. */
  readonly witnesses: NodeMessages | null
  readonly report: Report
}
