/**
 * The run lease: how long this server may keep tasks running without contact to the controller (R4). Uses
 * only its own monotonic clock.
 */
import type { DurationMs } from '../../protocol/units.ts'

export class RunLease {
  #sentMono = -1
  #untilMono = -1
  readonly isElided: boolean

  /** @param isElided a simulation does not enact heartbeats between faults; the lease then always holds */
  constructor(isElided: boolean) {
    this.isElided = isElided
  }

  get untilMono(): number {
    return this.#untilMono
  }

  /**
   * Grants a lease in answer to a message sent at `sentMono`, counted from that time. The answer to the
   * latest message applies, even if its lease is shorter, because the controller counts from it too (R5).
   * Returns true if this is the latest.
   */
  grant(sentMono: number, lengthMs: DurationMs): boolean {
    if (sentMono < this.#sentMono) return false
    this.#sentMono = sentMono
    this.#untilMono = sentMono + lengthMs
    return true
  }

  holds(nowMono: number): boolean {
    return this.#untilMono >= 0 && (this.isElided || nowMono < this.#untilMono)
  }
}
