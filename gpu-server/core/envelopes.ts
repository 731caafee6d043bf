/** The fields of every message of this server: boot, growing number, monotonic time (R3, R4, R6). */
import type { Envelope, NodeBody } from '../../protocol/envelope.ts'
import type { Boot } from '../../protocol/message-fields.ts'
import type { Instant } from '../../protocol/units.ts'
import { PROTOCOL_VERSION } from '../../protocol/limits.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import type { DurableState } from './durable-state.ts'

export class Envelopes {
  readonly #clock: Clock
  readonly #durable: DurableState
  readonly #startedAt: Instant
  #boot: Boot
  /** Prefix of the message ids of this boot. */
  #prefix: string
  #seq = 0

  constructor(clock: Clock, durable: DurableState) {
    this.#clock = clock
    this.#durable = durable
    this.#startedAt = clock.now()
    this.#boot = durable.boot
    this.#prefix = `${this.#boot.counter}.`
  }

  /** Milliseconds since this server started. */
  mono(): number {
    return this.#clock.now() - this.#startedAt
  }

  instantOf(mono: number): Instant {
    return this.#startedAt + mono
  }

  /**
   * A body with a copy of the task table must be made in the same synchronous step: number and copy belong
   * together (R6).
   */
  seal<B extends NodeBody>(body: B): Envelope<B> {
    const { boot, highestEpoch: epoch, controller, eventSeq: event_seq } = this.#durable
    if (boot !== this.#boot) {
      this.#boot = boot
      this.#prefix = `${boot.counter}.`
      this.#seq = 0
    }
    const seq = ++this.#seq
    const id = `${this.#prefix}${seq}`
    // Every message is made here: no spread.
    return controller === null
      ? { v: PROTOCOL_VERSION, id, sent_mono: this.mono(), boot, seq, epoch, body }
      : { v: PROTOCOL_VERSION, id, sent_mono: this.mono(), boot, seq, epoch, controller, event_seq, body }
  }
}
