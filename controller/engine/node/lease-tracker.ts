import type { DurationMs, Instant } from '../../../protocol/units.ts'
import type { LiveTask } from '../live.ts'

/**
 * Who was kept alive when. All leases are of one length, so that the order of renewal is the order of their
 * ends.
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

  /** Who was renewed when, the oldest first. */
  renewals(): Iterable<readonly [LiveTask, Instant]> {
    return this.#renewedAt
  }

  expiresAt(task: LiveTask): Instant | null {
    const renewedAt = this.#renewedAt.get(task)
    return renewedAt === undefined || this.lengthMs === null ? null : renewedAt + this.lengthMs
  }

  /** Takes out those that have ended by now. */
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

  /** Its time begins anew, by as much as nobody could be heard. */
  extend(deafMs: DurationMs): void {
    for (const [task, renewedAt] of this.#renewedAt) this.#renewedAt.set(task, renewedAt + deafMs)
  }
}
