import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { LiveTask } from './facts.ts'

/**
 * When each lease was renewed. All leases have the same length, so the order of renewal is the order of
 * expiry.
 */
export class LeaseTracker {
  /** Null: leases do not end. */
  lengthMs: DurationMs | null = null
  readonly #renewedAt = new Map<LiveTask, Instant>()

  renew(task: LiveTask, now: Instant): void {
    if (this.lengthMs === null) return
    this.#renewedAt.delete(task)
    this.#renewedAt.set(task, now)
  }

  /** Renewals, oldest first. */
  renewals(): Iterable<readonly [LiveTask, Instant]> {
    return this.#renewedAt
  }

  expiresAt(task: LiveTask): Instant | null {
    const renewedAt = this.#renewedAt.get(task)
    return renewedAt === undefined || this.lengthMs === null ? null : renewedAt + this.lengthMs
  }

  /** Removes and returns leases that have expired. */
  takeExpired(now: Instant): LiveTask[] {
    const expired: LiveTask[] = []
    if (this.lengthMs === null) return expired
    for (const [task, renewedAt] of this.#renewedAt) {
      if (now < renewedAt + this.lengthMs) break
      this.#renewedAt.delete(task)
      expired.push(task)
    }
    return expired
  }

  /** Extends all leases by the time in which no message could arrive. */
  extend(deafMs: DurationMs): void {
    for (const [task, renewedAt] of this.#renewedAt) this.#renewedAt.set(task, renewedAt + deafMs)
  }
}
