/**
 * Observes the sign of life of a leader: a value that changes with every commit and every beat. Only the
 * clock of the observer counts, so clocks of different hosts are never compared.
 */
import type { DurationMs } from '../../protocol/units.ts'

export interface LeaseWatch {
  /** Notes an observation. @param sign null: there is no leader. @returns silence of the leader so far */
  observe(sign: string | null, now: number): DurationMs
}

/** The longest silence between two observations, as a part of the lease. */
const STEPS_PER_LEASE = 8

/**
 * A long time between two observations counts as a short one: the observer was paused, or the leader could
 * not reach the store either.
 */
export function createLeaseWatch(leaseMs: DurationMs): LeaseWatch {
  const longestMs = leaseMs / STEPS_PER_LEASE
  let last: string | null | undefined
  let observedAt = 0
  let silentMs = 0
  return {
    observe(sign, now) {
      silentMs = last === undefined || sign !== last ? 0 : silentMs + Math.min(now - observedAt, longestMs)
      last = sign
      observedAt = now
      return silentMs
    },
  }
}
