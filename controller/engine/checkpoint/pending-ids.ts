/**
 * What a controller has asked of its ports and waits for, as who holds the other end knows it: how it is
 * written down, and taken up again.
 */
import type { CancelTimer, TimerId } from '../../ports/clock.ts'
import type { RequestOutcome } from '../../ports/bus.ts'

/** Names what waits. Throws for what does not wait any more. */
export interface PendingIds {
  timer(cancel: CancelTimer): TimerId
  /** One that was asked for with `soon`. */
  soon(fn: () => void): TimerId
  /** Number of a request to a node, by its callback. */
  request(done: (outcome: RequestOutcome) => void): number
}

/** Asks for it again, in the place that it had. */
export interface PendingRestorer {
  timer(id: TimerId, fn: () => void): CancelTimer
  request(number: number, done: (outcome: RequestOutcome) => void): void
  /** Commit `n` is on its way to the store. */
  commit(n: number): Promise<void>
}
