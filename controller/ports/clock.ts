import type { Instant } from '../../protocol/units.ts'

/** Takes the pending call back; harmless once it has run. */
export type CancelTimer = () => void

/**
 * Time, as the controller and the GPU-server core see it. The system clock and the simulator's virtual clock
 * implement it. Within one instant the ranks run in order, and a lower rank that became due meanwhile runs
 * first.
 */
export interface Clock {
  /** The current instant, whole milliseconds; never falls. */
  now(): Instant
  /**
   * Runs `fn` once at `instant` (at once, but never inside this call, if that is past). Lower `rank` runs
   * first within an instant.
   */
  at(instant: Instant, fn: () => void, rank?: TimerRank): CancelTimer
  /** Like `at` for the current instant, without a way back. */
  soon(fn: () => void, rank: TimerRank): void
}

/**
 * A timer that waits, as who keeps the clock knows it: of those for the same instant and rank the one with
 * the lower number runs first.
 */
export interface TimerId {
  readonly due: Instant
  readonly rank: TimerRank
  readonly number: number
}

/**
 * The order of work inside one instant.
 * 0. Devices: phases that end, completions, copies done.
 * 1. Messages.
 * 2. Arrivals: submissions and operator actions.
 * 3. Decisions: the controller's cycle, once for all that happened in the instant.
 */
export type TimerRank = 0 | 1 | 2 | 3
export const RANK_DEVICE: TimerRank = 0
export const RANK_MESSAGE: TimerRank = 1
export const RANK_ARRIVAL: TimerRank = 2
export const RANK_DECISION: TimerRank = 3
