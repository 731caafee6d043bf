/**
 * The simulated bus: messages between the processes of one world, in virtual time, by reference or (mode
 * `wire`) through the codec, which proves that nothing depends on the identity of an object. Link conditions
 * and a stopped broker lose, delay, hold or duplicate messages, on both ways of a request alike.
 */
import type { Bus, Handler, NoAnswer, RequestOutcome } from '../../controller/ports/bus.ts'
import { RANK_MESSAGE } from '../../controller/ports/clock.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import { decode, encode } from '../../protocol/codec.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { deliverCopies, UNHINDERED } from './passage.ts'
import type { LinkConditions, Party } from './passage.ts'

export type BusMode = 'reference' | 'wire'

export interface Endpoint extends Bus {
  /** Its process is dead: it receives nothing, and none of its requests is answered. */
  kill(): void
}

export interface SimBusOptions {
  readonly clock: Clock
  readonly mode: BusMode
  /** Left out: messages arrive at once, every process lives, and every request is answered in the end. */
  readonly links?: LinkConditions
}

export interface BusWatcher {
  /**
   * Sees every message that is delivered, before it is handled. @param from the node that sent it; null: a
   * controller
   */
  delivered?(subject: string, message: Envelope, from: string | null): void
  /** Sees every answer that is given, also one that is lost on its way. */
  answered?(asked: Envelope, answer: Envelope): void
}

interface Process extends Party {
  isAlive: boolean
  isDrained: boolean
}

interface Subscription {
  readonly head: string
  readonly tail: string | null
  readonly handler: Handler
  readonly process: Process
  isOpen: boolean
}

/** Takes an answer and the process that gave it. */
type SimReply = (answer: Envelope, from: Process) => void

/** Messages that answer messages nest at most this deep. Deeper ones wait for their turn in the clock. */
const MAX_DEPTH = 8

export class SimBus {
  readonly #clock: Clock
  readonly #mode: BusMode
  /** Null: nothing is lost or late. */
  readonly #links: LinkConditions | null
  #subscriptions: readonly Subscription[] = []
  /** The subscriptions of each subject that was used so far. */
  readonly #bySubject = new Map<string, readonly Subscription[]>()
  #depth = 0
  /** Grows with every restart of the broker, which loses the messages under way. */
  #brokerStart = 0
  /** Number of faults that keep the broker stopped. */
  #brokerAbsences = 0
  readonly #onConnection = new Set<(isConnected: boolean) => void>()
  readonly #watchers: BusWatcher[] = []

  constructor({ clock, mode, links }: SimBusOptions) {
    this.#clock = clock
    this.#mode = mode
    this.#links = links ?? null
  }

  watch(watcher: BusWatcher): void {
    this.#watchers.push(watcher)
  }

  /**
   * @param node null: a controller
   * @param beforeSending called with every request before it leaves. It may end the sender's process, and
   *   returns false for a request that does not leave.
   */
  endpoint(
    node: string | null,
    beforeSending: (subject: string, message: Envelope) => boolean = () => true,
  ): Endpoint {
    const process: Process = { node, isAlive: true, isDrained: false }
    const own: Subscription[] = []
    return {
      publish: (subject, message) => {
        if (process.isAlive && !process.isDrained) this.#send(process, subject, message, () => {})
      },
      request: (subject, message, timeoutMs, done) => {
        if (process.isAlive && beforeSending(subject, message))
          this.#request(process, subject, message, timeoutMs, done)
      },
      subscribe: (pattern, handler) => {
        const [head = '', tail = null] = pattern.split('*')
        const subscription: Subscription = { head, tail, handler, process, isOpen: true }
        own.push(subscription)
        this.#setSubscriptions([...this.#subscriptions, subscription])
        return () => this.#end(subscription)
      },
      onConnection: (listener) => {
        const inform = (isConnected: boolean): void => void (process.isAlive && listener(isConnected))
        this.#onConnection.add(inform)
        if (this.#brokerAbsences > 0)
          this.#clock.soon(() => this.#brokerAbsences > 0 && inform(false), RANK_MESSAGE)
        return () => this.#onConnection.delete(inform)
      },
      drain: () => {
        process.isDrained = true
        return Promise.resolve()
      },
      kill: () => {
        process.isAlive = false
        for (const subscription of own) this.#end(subscription)
      },
    }
  }

  stopBroker(): void {
    this.#brokerAbsences += 1
    this.#brokerStart += 1
    if (this.#brokerAbsences === 1) for (const inform of this.#onConnection) inform(false)
  }

  /** Returns whether the broker runs again. */
  startBroker(): boolean {
    this.#brokerAbsences -= 1
    if (this.#brokerAbsences > 0) return false
    for (const inform of this.#onConnection) inform(true)
    return true
  }

  /** Delivers messages that a fault has held until now. */
  deliverHeld(held: readonly (() => void)[]): void {
    for (const deliver of held) this.#clock.soon(deliver, RANK_MESSAGE)
  }

  #request(
    process: Process,
    subject: string,
    message: Envelope,
    timeoutMs: DurationMs,
    done: (outcome: RequestOutcome) => void,
  ): void {
    // In a method of its own: the functions below would keep memory for all their variables in each request.
    if (this.#links === null) return this.#requestNow(process, subject, message, done)
    const clock = this.#clock
    let isOver = false
    let cancel: (() => void) | null = null
    const end = (outcome: RequestOutcome): void => {
      if (isOver || !process.isAlive) return
      isOver = true
      cancel?.()
      done(outcome)
    }
    const answered = (answer: Envelope, from: Process): void =>
      this.#leg(from, process, () => end({ answered: true, answer: this.#carried(answer) }))
    const failure = process.isDrained ? 'disconnected' : this.#send(process, subject, message, answered)
    if (isOver) return
    if (failure === null)
      cancel = clock.at(clock.now() + timeoutMs, () => end({ answered: false, why: 'timeout' }), RANK_MESSAGE)
    else this.#failSoon(end, failure)
  }

  /** The answer comes at once: no timer is needed. */
  #requestNow(
    process: Process,
    subject: string,
    message: Envelope,
    done: (outcome: RequestOutcome) => void,
  ): void {
    const reply = (answer: Envelope): void => done({ answered: true, answer: this.#carried(answer) })
    const failure = process.isDrained ? 'disconnected' : this.#send(process, subject, message, reply)
    if (failure !== null) this.#failSoon(done, failure)
  }

  #failSoon(done: (outcome: RequestOutcome) => void, why: NoAnswer): void {
    this.#clock.soon(() => done({ answered: false, why }), RANK_MESSAGE)
  }

  /** Returns why no answer can come, or null. */
  #send(
    from: Process,
    subject: string,
    message: Envelope,
    reply: SimReply,
  ): 'disconnected' | 'no_responder' | null {
    if (this.#brokerAbsences > 0) return 'disconnected'
    const subscriptions = this.#subscriptionsFor(subject)
    const carried = this.#carried(message)
    // The broker reports a subject without subscriptions, if the sender reaches it.
    if (subscriptions.length === 0)
      return this.#links?.isCut(from, { node: null }) === true ? null : 'no_responder'
    for (const subscription of subscriptions) this.#deliver(from, subscription, subject, carried, reply)
    return null
  }

  #deliver(from: Process, to: Subscription, subject: string, message: Envelope, reply: SimReply): void {
    if (this.#links !== null || this.#depth >= MAX_DEPTH)
      return this.#deliverByLink(from, to, subject, message, reply)
    // As `#leg`, without a function for each message.
    this.#depth += 1
    try {
      this.#handle(from, to, subject, message, reply)
    } finally {
      this.#depth -= 1
    }
  }

  #deliverByLink(from: Process, to: Subscription, subject: string, message: Envelope, reply: SimReply): void {
    this.#leg(from, to.process, () => this.#handle(from, to, subject, message, reply))
  }

  #handle(from: Process, to: Subscription, subject: string, message: Envelope, reply: SimReply): void {
    if (!to.isOpen) return
    for (const watcher of this.#watchers) watcher.delivered?.(subject, message, from.node)
    to.handler(message, subject, (answer) => this.#answer(to.process, message, answer, reply))
  }

  #answer(by: Process, asked: Envelope, answer: Envelope, reply: SimReply): void {
    if (!by.isAlive) return
    for (const watcher of this.#watchers) watcher.answered?.(asked, answer)
    reply(answer, by)
  }

  /** Delivers one message one way: never, once or repeatedly, now, late, or when the hold ends. */
  #leg(from: Process, to: Process, arrive: () => void): void {
    const links = this.#links
    const passage = links?.passage(from, to) ?? UNHINDERED
    if (passage.isLost || this.#brokerAbsences > 0) return
    if (passage === UNHINDERED || links === null) return this.#arriveNow(arrive)
    const brokerStart = this.#brokerStart
    const arriveLate = (): void => {
      if (brokerStart === this.#brokerStart && !links.isCut(from, to)) arrive()
    }
    deliverCopies(this.#clock, passage, () => this.#arriveNow(arrive), arriveLate)
  }

  /** A message that takes no time is handled before its sender continues. */
  #arriveNow(arrive: () => void): void {
    if (this.#depth >= MAX_DEPTH) return this.#clock.soon(arrive, RANK_MESSAGE)
    this.#depth += 1
    try {
      arrive()
    } finally {
      this.#depth -= 1
    }
  }

  #subscriptionsFor(subject: string): readonly Subscription[] {
    let found = this.#bySubject.get(subject)
    if (found === undefined) {
      found = this.#subscriptions.filter((subscription) => isFor(subscription, subject))
      this.#bySubject.set(subject, found)
    }
    return found
  }

  #end(subscription: Subscription): void {
    subscription.isOpen = false
    this.#setSubscriptions(this.#subscriptions.filter((each) => each !== subscription))
  }

  #setSubscriptions(subscriptions: readonly Subscription[]): void {
    this.#subscriptions = subscriptions
    this.#bySubject.clear()
  }

  #carried(message: Envelope): Envelope {
    if (this.#mode === 'reference') return message
    const decoded = decode(encode(message))
    if (!decoded.ok) throw new Error(`broken invariant: a message of ours does not decode: ${decoded.why}`)
    return decoded.envelope
  }
}

/** The `*` of a pattern matches exactly one part. */
function isFor({ head, tail }: Subscription, subject: string): boolean {
  if (tail === null) return subject === head
  const end = subject.length - tail.length
  return (
    end > head.length &&
    subject.startsWith(head) &&
    subject.endsWith(tail) &&
    !subject.slice(head.length, end).includes('.')
  )
}
