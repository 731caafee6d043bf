/** Times of a controller that may be replaced; all derive from its lease. */
import type { DurationMs } from '../../protocol/units.ts'

export interface LeaseTimes {
  /** Interval at which an idle leader writes its epoch (R9). */
  readonly renewMs: DurationMs
  /** After the epoch was written, answers for this long need no further write. */
  readonly leadsForMs: DurationMs
  /** A commit that takes longer is a fault of the store. */
  readonly commitWithinMs: DurationMs
}

/** Lease of a controller without a standby: no other controller leads for this long after a commit. */
export const LONE_LEASE_MS: DurationMs = 4_000
/** Less than the margin of a lease window of a node (`LEASE_MARGIN_MS`). */
const LONGEST_LEADS_FOR_MS: DurationMs = 4_000
const COMMIT_LEASES = 15

export function leaseTimes(leaseMs: DurationMs): LeaseTimes {
  const leadsForMs = Math.min(leaseMs, LONGEST_LEADS_FOR_MS)
  return { renewMs: leadsForMs / 2, leadsForMs, commitWithinMs: leaseMs * COMMIT_LEASES }
}
