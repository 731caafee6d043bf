/**
 * Names for timers, requests and commits that a controller waits for, so that a checkpoint can capture and
 * restore them.
 */
import type { CancelTimer, TimerId } from './clock.ts'
import type { RequestOutcome } from './bus.ts'

/** Returns the id of a pending item. Throws if the item is no longer pending. */
export interface PendingIds {
  timer(cancel: CancelTimer): TimerId
  /** For a callback passed to `soon`. */
  soon(fn: () => void): TimerId
  /** Returns the number of a request to a node by its callback. */
  request(done: (outcome: RequestOutcome) => void): number
}

/** Requests a pending item again, in its original position. */
export interface PendingRestorer {
  timer(id: TimerId, fn: () => void): CancelTimer
  request(number: number, done: (outcome: RequestOutcome) => void): void
  /** Returns the promise of commit `n`, which is in progress. */
  commit(n: number): Promise<void>
}
