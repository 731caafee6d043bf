/**
 * A network in virtual time that does to messages what networks do: loses them, doubles them, delays them past every timeout, and cuts
 * endpoints off. Both legs of a request suffer alike.
 */
import type { Bus, Handler, RequestOutcome } from '../../controller/ports/bus.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import { RANK_MESSAGE } from '../../controller/ports/clock.ts'
import type { RandomStream } from '../../controller/ports/random.ts'
import type { Envelope } from '../../protocol/messages.ts'
import { decode, encode } from '../../protocol/codec.ts'
import type { DurationMs } from '../../protocol/units.ts'

/** Probabilities in [0, 1). */
export interface NetworkFaults {
  readonly drop: number
  readonly duplicate: number
  /** How many messages take a long time, and how long at most. */
  readonly slow: number
  readonly slowMs: DurationMs
  readonly usualMs: DurationMs
}

export const NO_FAULTS: NetworkFaults = { drop: 0, duplicate: 0, slow: 0, slowMs: 0, usualMs: 2 }

export interface Endpoint extends Bus {
  /** Nothing of what it sent or asked for reaches it any more: its process is dead. */
  kill(): void
}

interface Subscription {
  readonly head: string
  readonly tail: string | null
  readonly handler: Handler
  readonly endpoint: string
  isAlive: boolean
}

export class FaultyNetwork {
  faults: NetworkFaults = NO_FAULTS
  /** Names of endpoints that nobody reaches, and who reach nobody. */
  readonly cutOff = new Set<string>()
  /** Sees every message that is delivered. */
  onDelivery: ((subject: string, message: Envelope, from: string) => void) | null = null
  #subscriptions: Subscription[] = []
  readonly #clock: Clock
  readonly #random: RandomStream

  constructor(clock: Clock, random: RandomStream) {
    this.#clock = clock
    this.#random = random
  }

  endpoint(name: string): Endpoint {
    let isDead = false
    const mine: Subscription[] = []
    return {
      publish: (subject, message) => this.#send(name, subject, message, () => {}),
      request: (subject, message, timeoutMs, done) => {
        let isOver = false
        const end = (outcome: RequestOutcome): void => {
          if (isOver || isDead) return
          isOver = true
          cancel()
          done(outcome)
        }
        const cancel = this.#clock.at(this.#clock.now() + timeoutMs, () => end({ answered: false, why: 'timeout' }), RANK_MESSAGE)
        this.#send(name, subject, message, (answer, from) => this.#leg(from, name, () => end({ answered: true, answer: carried(answer) })))
      },
      subscribe: (pattern, handler) => {
        const [head = '', tail = null] = pattern.split('*')
        const subscription: Subscription = { head, tail, handler, endpoint: name, isAlive: true }
        this.#subscriptions.push(subscription)
        mine.push(subscription)
        return () => this.#end(subscription)
      },
      drain: () => Promise.resolve(),
      kill: () => {
        isDead = true
        for (const subscription of mine) this.#end(subscription)
      },
    }
  }

  #send(from: string, subject: string, message: Envelope, answer: (answer: Envelope, from: string) => void): void {
    const carriedMessage = carried(message)
    for (const subscription of this.#subscriptions) {
      if (!isFor(subscription, subject)) continue
      this.#leg(from, subscription.endpoint, () => {
        if (!subscription.isAlive) return
        this.onDelivery?.(subject, carriedMessage, from)
        subscription.handler(carriedMessage, subject, (body) => answer(body, subscription.endpoint))
      })
    }
  }

  /** One way of one message: not at all, once or more often, soon or late. */
  #leg(from: string, to: string, arrive: () => void): void {
    const { drop, duplicate, slow, slowMs, usualMs } = this.faults
    const random = this.#random
    if (this.cutOff.has(from) || this.cutOff.has(to) || random() < drop) return
    const copies = random() < duplicate ? 2 : 1
    for (let i = 0; i < copies; i++) {
      const delayMs = 1 + Math.floor(random() * (random() < slow ? slowMs : usualMs))
      const deliver = (): void => {
        if (!this.cutOff.has(to)) arrive()
      }
      this.#clock.at(this.#clock.now() + delayMs, deliver, RANK_MESSAGE)
    }
  }

  #end(subscription: Subscription): void {
    subscription.isAlive = false
    this.#subscriptions = this.#subscriptions.filter((each) => each !== subscription)
  }
}

function isFor({ head, tail }: Subscription, subject: string): boolean {
  return tail === null ? subject === head : subject.startsWith(head) && subject.endsWith(tail)
}

function carried(message: Envelope): Envelope {
  const decoded = decode(encode(message))
  if (!decoded.ok) throw new Error(`a message of ours does not decode: ${decoded.why}`)
  return decoded.envelope
}
