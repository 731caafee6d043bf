/**
 * GPU servers have durably seen the epoch of the controller that wrote the missing part, and obey no older
 * one (R9). Starts count epochs one by one, so an epoch this far above its predecessor was raised.
 */
export const MIN_EPOCHS_AHEAD = 10_000
/**
 * Epochs per millisecond of wall-clock time: a restore is above every one of an earlier millisecond, even if
 * its store does not know that one.
 */
const EPOCHS_PER_MS = 1_000

/**
 * Returns the epoch of a store that was restored, or whose loss was accepted. The random part keeps two
 * stores that came from one backup in one millisecond from having the same epoch.
 * @param highest the highest epoch that is known
 * @param wallMs milliseconds since the Unix epoch
 * @param below draws an integer from 0 up to, not including, the limit
 */
export function epochAfterLoss(highest: number, wallMs: number, below: (limit: number) => number): number {
  return Math.max(highest + MIN_EPOCHS_AHEAD, wallMs * EPOCHS_PER_MS) + below(EPOCHS_PER_MS)
}
