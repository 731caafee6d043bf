/**
 * The simulated bus: messages between endpoints of one process, in virtual time, by reference or (mode
 * `wire`) through the codec, which proves that nothing depends on the identity of an object.
 */
import { decode, encode } from '../../protocol/codec.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { Bus, Handler, RequestOutcome } from '../../controller/ports/bus.ts'
import { RANK_MESSAGE } from '../../controller/ports/clock.ts'
import type { SimClock } from '../kernel/virtual-clock.ts'

export type BusMode = 'reference' | 'wire'

export interface SimBusOptions {
  readonly clock: SimClock
  readonly mode: BusMode
  /** One way. */
  readonly delayMs: DurationMs
}

type Done = (outcome: RequestOutcome) => void

/** Messages that answer messages: deeper than this they wait for their turn. */
const MAX_DEPTH = 8

export class SimBus implements Bus {
  readonly #o: SimBusOptions
  readonly #exact = new Map<string, Handler>()
  /** Patterns with one `*`, split around it. */
  #patterns: { readonly head: string; readonly tail: string; readonly handler: Handler }[] = []
  /** Who hears each subject, as found before; forgotten whenever somebody begins or ends to listen. */
  readonly #bySubject = new Map<string, Handler>()
  #isDrained = false
  #depth = 0
  messages = 0

  constructor(options: SimBusOptions) {
    this.#o = options
  }

  publish(subject: string, message: Envelope): void {
    this.#deliver(this.#handlerFor(subject), subject, message, () => {})
  }

  request(subject: string, message: Envelope, timeoutMs: DurationMs, done: Done): void {
    if (this.#isDrained) {
      this.#later(() => done({ answered: false, why: 'disconnected' }))
      return
    }
    const handler = this.#handlerFor(subject)
    if (handler === null) {
      this.#later(() => done({ answered: false, why: 'no_responder' }))
      return
    }
    if (this.#o.delayMs === 0) this.#requestAtOnce(handler, subject, message, done)
    else this.#requestWithin(timeoutMs, handler, subject, message, done)
  }

  subscribe(pattern: string, handler: Handler): () => void {
    this.#bySubject.clear()
    const star = pattern.indexOf('*')
    if (star < 0) {
      this.#exact.set(pattern, handler)
      return () => {
        this.#exact.delete(pattern)
        this.#bySubject.clear()
      }
    }
    const entry = { head: pattern.slice(0, star), tail: pattern.slice(star + 1), handler }
    this.#patterns.push(entry)
    return () => {
      this.#patterns = this.#patterns.filter((each) => each !== entry)
      this.#bySubject.clear()
    }
  }

  drain(): Promise<void> {
    this.#isDrained = true
    return Promise.resolve()
  }

  /**
   * Nothing is lost and nothing takes time: the answer always comes, and a timer per request would only fill
   * the clock.
   */
  #requestAtOnce(handler: Handler, subject: string, message: Envelope, done: Done): void {
    this.#deliver(handler, subject, message, (answer) =>
      done({ answered: true, answer: this.#carried(answer) }),
    )
  }

  #requestWithin(
    timeoutMs: DurationMs,
    handler: Handler,
    subject: string,
    message: Envelope,
    done: Done,
  ): void {
    let isOver = false
    const expire = (): void => {
      isOver = true
      done({ answered: false, why: 'timeout' })
    }
    const cancel = this.#o.clock.at(this.#o.clock.now() + timeoutMs, expire, RANK_MESSAGE)
    this.#deliver(handler, subject, message, (answer) => {
      this.#later(() => {
        if (isOver) return
        isOver = true
        cancel()
        done({ answered: true, answer: this.#carried(answer) })
      })
    })
  }

  /** @param handler who hears it as things are; when it has to wait, whoever hears it then does */
  #deliver(
    handler: Handler | null,
    subject: string,
    message: Envelope,
    reply: (answer: Envelope) => void,
  ): void {
    if (this.#isDrained) return
    this.messages += 1
    const carried = this.#carried(message)
    if (this.#o.delayMs > 0 || this.#depth >= MAX_DEPTH) {
      this.#later(() => this.#handlerFor(subject)?.(carried, subject, reply))
      return
    }
    // A message that takes no time is heard before its sender goes on.
    this.#depth += 1
    try {
      handler?.(carried, subject, reply)
    } finally {
      this.#depth -= 1
    }
  }

  #handlerFor(subject: string): Handler | null {
    const known = this.#bySubject.get(subject)
    if (known !== undefined) return known
    const handler =
      this.#exact.get(subject) ?? this.#patterns.find((pattern) => matches(subject, pattern))?.handler
    if (handler !== undefined) this.#bySubject.set(subject, handler)
    return handler ?? null
  }

  #later(fn: () => void): void {
    if (this.#o.delayMs === 0) this.#o.clock.soon(fn, RANK_MESSAGE)
    else this.#o.clock.at(this.#o.clock.now() + this.#o.delayMs, fn, RANK_MESSAGE)
  }

  #carried(message: Envelope): Envelope {
    if (this.#o.mode === 'reference') return message
    const decoded = decode(encode(message))
    if (!decoded.ok) throw new Error(`broken invariant: a message of ours does not decode: ${decoded.why}`)
    return decoded.envelope
  }
}

/** Between head and tail stands exactly one part. */
function matches(subject: string, { head, tail }: { readonly head: string; readonly tail: string }): boolean {
  const end = subject.length - tail.length
  return (
    end > head.length &&
    subject.startsWith(head) &&
    subject.endsWith(tail) &&
    !subject.slice(head.length, end).includes('.')
  )
}
