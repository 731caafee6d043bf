import type { DurationMs, Instant } from '../../protocol/units.ts'

/** Cancels the pending call. Does nothing once it has run. */
export type CancelTimer = () => void

/**
 * Time, as the controller and the GPU-server core see it. The system clock and the simulator's virtual clock
 * implement it. Within one instant the ranks run in order; a lower rank that becomes due meanwhile runs
 * first.
 */
export interface Clock {
  /** The current instant in whole milliseconds; never decreases. */
  now(): Instant
  /**
   * Runs `fn` once at `instant` (immediately after this call if it has passed). Lower `rank` runs first
   * within an instant.
   */
  at(instant: Instant, fn: () => void, rank?: TimerRank): CancelTimer
  /** Like `at` for the current instant; cannot be cancelled. */
  soon(fn: () => void, rank: TimerRank): void
}

/**
 * A pending timer, as the owner of the clock identifies it: among those for the same instant and rank the one
 * with the lower number runs first.
 */
export interface TimerId {
  readonly due: Instant
  readonly rank: TimerRank
  readonly number: number
}

/**
 * The order of work inside one instant.
 * 0. Devices: phases that end, completions, finished copies.
 * 1. Messages.
 * 2. Arrivals: submissions and operator actions.
 * 3. Decisions: the controller's cycle, once for everything that happened in the instant.
 */
export type TimerRank = 0 | 1 | 2 | 3
export const RANK_DEVICE: TimerRank = 0
export const RANK_MESSAGE: TimerRank = 1
export const RANK_ARRIVAL: TimerRank = 2
export const RANK_DECISION: TimerRank = 3

/** Resolves after this time, or at once when the signal is aborted. */
export function timePasses(clock: Clock, ms: DurationMs, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel()
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.at(clock.now() + ms, end)
    signal?.addEventListener('abort', end)
  })
}
