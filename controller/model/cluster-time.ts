/**
 * Clocks of different hosts are never compared: the next leader continues the time of the leader before it,
 * which it knows from the events that it has followed. So instants of events never fall, and no task seems
 * idle for the difference between two hosts.
 */
import type { DurationMs, Instant } from '../../protocol/units.ts'

/** A standby receives events late. A clock that is ahead by no more is right. */
const MAX_AHEAD_MS: DurationMs = 5_000

/**
 * @param newest instant of the newest event that was followed, and the time since it was received
 * @returns what this host adds to its own time
 */
export function clockOffset(
  newest: { readonly at: Instant; readonly ageMs: DurationMs },
  hostNow: Instant,
): DurationMs {
  const aheadMs = hostNow - Math.ceil(newest.at + newest.ageMs)
  return aheadMs >= 0 && aheadMs <= MAX_AHEAD_MS ? 0 : -aheadMs
}
