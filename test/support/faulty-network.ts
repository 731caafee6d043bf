/**
 * The simulated bus under the control of a test: messages are lost, duplicated, delayed past
 * every timeout, and endpoints are cut off. Both directions of a request are affected alike, each message
 * takes at least 1 ms, and each passes through the codec.
 */
import type { Clock } from '../../controller/ports/clock.ts'
import type { RandomStream } from '../../controller/ports/random.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { SimBus } from '../../simulator/network/sim-bus.ts'
import type { Endpoint } from '../../simulator/network/sim-bus.ts'
import { LOST } from '../../simulator/network/passage.ts'
import type { Party, Passage } from '../../simulator/network/passage.ts'

export type { Endpoint }

/** Probabilities in [0, 1). */
export interface NetworkFaults {
  readonly drop: number
  readonly duplicate: number
  /** Number of messages with a long delay, and the maximum delay. */
  readonly slow: number
  readonly slowMs: DurationMs
  readonly usualMs: DurationMs
}

export const NO_FAULTS: NetworkFaults = { drop: 0, duplicate: 0, slow: 0, slowMs: 0, usualMs: 2 }

export class FaultyNetwork {
  faults: NetworkFaults = NO_FAULTS
  /** Names of endpoints that are cut off in both directions. */
  readonly cutOff = new Set<string>()
  readonly #bus: SimBus
  readonly #random: RandomStream

  constructor(clock: Clock, random: RandomStream) {
    this.#random = random
    const links = {
      passage: (from: Party, to: Party) => this.#passage(from, to),
      // A lost request gets no error.
      isCut: (_from: Party, { node }: Party) => node === null || this.cutOff.has(node),
    }
    this.#bus = new SimBus({ clock, mode: 'wire', links })
    this.#bus.watch({
      delivered: (subject, message, from) => this.onDelivery?.(subject, message, from ?? ''),
    })
  }

  /** Observes every delivered message. */
  onDelivery: ((subject: string, message: Envelope, from: string) => void) | null = null

  /** The broker is unreachable for every endpoint, and each is notified. */
  stopBroker(): void {
    this.#bus.stopBroker()
  }

  startBroker(): void {
    this.#bus.startBroker()
  }

  endpoint(name: string): Endpoint {
    return this.#bus.endpoint(name)
  }

  #passage(from: Party, to: Party): Passage {
    const { drop, duplicate, slow, slowMs, usualMs } = this.faults
    const random = this.#random
    if (this.cutOff.has(from.node ?? '') || this.cutOff.has(to.node ?? '') || random() < drop) return LOST
    const copies = random() < duplicate ? 2 : 1
    const delaysMs = Array.from(
      { length: copies },
      () => 1 + Math.floor(random() * (random() < slow ? slowMs : usualMs)),
    )
    return { isLost: false, copies, delaysMs, hold: null }
  }
}
