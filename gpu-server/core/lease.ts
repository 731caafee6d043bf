/**
 * The run lease: until when this server may keep running tasks without a word from the controller (R4). Own
 * monotonic clock only.
 */
import type { DurationMs } from '../../protocol/units.ts'

export class RunLease {
  #sentMono = -1
  #untilMono = -1
  readonly isElided: boolean

  /**
   * @param isElided between faults a simulation does not enact heartbeats; the lease then holds by
   *   definition.
   */
  constructor(isElided: boolean) {
    this.isElided = isElided
  }

  get untilMono(): number {
    return this.#untilMono
  }

  /**
   * Granted in answer to a message sent at `sentMono`: it counts from then. The answer to the latest message
   * holds, also when it is shorter, because the controller counts by it from then on (R5). Says whether this
   * is the latest.
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
