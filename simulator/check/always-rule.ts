import type { Event } from '../../controller/model/event.ts'
import type { LostHistory } from '../world/store-history.ts'
import type { Observed } from './observed.ts'
import type { Shadow } from './shadow.ts'
import type { NodeMessages } from './node-messages.ts'
import type { Report } from './violation.ts'

/**
 * Something that holds all the time. Calls come in the order of the methods, `afterStep` once for all batches
 * of a step of the clock.
 */
export interface AlwaysRule {
  /** An event that the books have not taken in yet. */
  before?(event: Event): void
  /** The same, when they have. */
  after?(event: Event): void
  /** Everybody has done what he had to do in this step; nodes and tasks that the events of the step named. */
  afterStep?(nodeIds: ReadonlySet<string>, taskIds: ReadonlySet<string>): void
  /** After every step, whether or not it had events. */
  afterEveryStep?(): void
  /** The store has lost a part of its history; the books hold what is left. */
  setBack?(lost: LostHistory): void
  /** The run is over. */
  finish?(): void
}

export interface RuleContext {
  readonly shadow: Shadow
  readonly observed: Observed
  /** Null where nothing breaks. */
  readonly witnesses: NodeMessages | null
  readonly report: Report
}
