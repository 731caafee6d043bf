/** Whether what is shown is current. Pure. */
import type { FeedStatus } from './feed-messages.ts'

/** The feed brings a summary each second. */
const STALE_MS = 10_000

export type Freshness = 'fresh' | 'connecting' | 'silent'

/**
 * Silent: the connection is lost, or nothing has arrived for ten seconds.
 * @param heardAt when the last message arrived; null: none yet
 */
export function freshnessOf(status: FeedStatus, heardAt: number | null, now: number): Freshness {
  if (status === 'reconnecting' || (heardAt !== null && now - heardAt >= STALE_MS)) return 'silent'
  return status === 'live' && heardAt !== null ? 'fresh' : 'connecting'
}
