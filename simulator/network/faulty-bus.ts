/**
 * The bus of a world in which things break: as the simulated bus between faults, and beyond that what
 * networks, brokers and dying processes do to messages. Both legs of a request suffer alike.
 */
import type { Bus, Handler, RequestOutcome } from '../../controller/ports/bus.ts'
import { RANK_MESSAGE } from '../../controller/ports/clock.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import { decode, encode } from '../../protocol/codec.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { BusMode } from './sim-bus.ts'

/** Somebody who speaks: a node by its name, or a controller (null). */
export interface Party {
  readonly node: string | null
}

/** What becomes of one message on its way. */
export interface Passage {
  readonly isLost: boolean
  readonly copies: number
  /** Of each copy. */
  readonly delaysMs: readonly DurationMs[]
  /** Keeps it; whoever keeps it delivers it in the end. */
  readonly hold: ((deliver: () => void) => void) | null
}

export interface LinkConditions {
  passage(from: Party, to: Party): Passage
  isCut(from: Party, to: Party): boolean
}

export interface Endpoint extends Bus {
  /** Its process is dead: it hears nothing, and nothing it asked for is answered. */
  kill(): void
}

export interface FaultyBusOptions {
  readonly clock: Clock
  readonly mode: BusMode
  readonly weather: LinkConditions
}

export interface BusWatcher {
  /**
   * Sees every message that is delivered, before it is handled. @param from the node that sent it; null: a
   * controller
   */
  delivered?(subject: string, message: Envelope, from: string | null): void
  /** Sees every answer that is given; whether it arrives is another matter. */
  answered?(asked: Envelope, answer: Envelope): void
}

interface Process extends Party {
  isAlive: boolean
}

interface Subscription {
  readonly head: string
  readonly tail: string | null
  readonly handler: Handler
  readonly process: Process
  isOpen: boolean
}

/** Messages that answer messages: deeper than this they wait for their turn. */
const MAX_DEPTH = 8

export class FaultyBus {
  readonly #o: FaultyBusOptions
  #subscriptions: readonly Subscription[] = []
  /** Who hears each subject, as found before. */
  readonly #bySubject = new Map<string, readonly Subscription[]>()
  #depth = 0
  /** Grows with every restart of the broker: what was under way before is gone. */
  #brokerStart = 0
  /** So many faults keep it away. */
  #brokerAbsences = 0
  readonly #onConnection = new Set<(isConnected: boolean) => void>()
  messages = 0
  /** Requests that failed and messages that were lost because the broker was away. */
  lostWithBroker = 0
  readonly #watchers: BusWatcher[] = []

  constructor(options: FaultyBusOptions) {
    this.#o = options
  }

  watch(watcher: BusWatcher): void {
    this.#watchers.push(watcher)
  }

  /**
   * @param beforeSending called with every request before it leaves; false: it does not leave. Its sender may
   *   die there.
   */
  endpoint(
    node: string | null,
    beforeSending: (subject: string, message: Envelope) => boolean = () => true,
  ): Endpoint {
    const process: Process = { node, isAlive: true }
    const mine: Subscription[] = []
    return {
      publish: (subject, message) =>
        void (process.isAlive && this.#send(process, subject, message, () => {})),
      request: (subject, message, timeoutMs, done) => {
        if (process.isAlive && beforeSending(subject, message))
          this.#request(process, subject, message, timeoutMs, done)
      },
      subscribe: (pattern, handler) => {
        const [head = '', tail = null] = pattern.split('*')
        const subscription: Subscription = { head, tail, handler, process, isOpen: true }
        mine.push(subscription)
        this.#setSubscriptions([...this.#subscriptions, subscription])
        return () => this.#end(subscription)
      },
      onConnection: (listener) => {
        const tell = (isConnected: boolean): void => void (process.isAlive && listener(isConnected))
        this.#onConnection.add(tell)
        if (this.#brokerAbsences > 0)
          this.#o.clock.soon(() => this.#brokerAbsences > 0 && tell(false), RANK_MESSAGE)
        return () => this.#onConnection.delete(tell)
      },
      drain: () => Promise.resolve(),
      kill: () => {
        process.isAlive = false
        for (const subscription of mine) this.#end(subscription)
      },
    }
  }

  stopBroker(): void {
    this.#brokerAbsences += 1
    this.#brokerStart += 1
    if (this.#brokerAbsences === 1) for (const tell of this.#onConnection) tell(false)
  }

  /** Says whether it is there again. */
  startBroker(): boolean {
    this.#brokerAbsences -= 1
    if (this.#brokerAbsences > 0) return false
    for (const tell of this.#onConnection) tell(true)
    return true
  }

  /** What a fault has kept until now. */
  deliverHeld(held: readonly (() => void)[]): void {
    for (const deliver of held) this.#o.clock.soon(deliver, RANK_MESSAGE)
  }

  #request(
    process: Process,
    subject: string,
    message: Envelope,
    timeoutMs: DurationMs,
    done: (outcome: RequestOutcome) => void,
  ): void {
    const { clock } = this.#o
    let isOver = false
    let cancel = (): void => {}
    const end = (outcome: RequestOutcome): void => {
      if (isOver || !process.isAlive) return
      isOver = true
      cancel()
      done(outcome)
    }
    const answered = (answer: Envelope, from: Process): void =>
      this.#leg(from, process, () => end({ answered: true, answer: this.#carried(answer) }))
    const failure = this.#send(process, subject, message, answered)
    if (isOver) return
    if (failure === null)
      cancel = clock.at(clock.now() + timeoutMs, () => end({ answered: false, why: 'timeout' }), RANK_MESSAGE)
    else clock.soon(() => end({ answered: false, why: failure }), RANK_MESSAGE)
  }

  /** Answers why nobody will ever answer; null: somebody may. */
  #send(
    from: Process,
    subject: string,
    message: Envelope,
    reply: (answer: Envelope, from: Process) => void,
  ): 'disconnected' | 'no_responder' | null {
    if (this.#brokerAbsences > 0) {
      this.lostWithBroker += 1
      return 'disconnected'
    }
    this.messages += 1
    const hearers = this.#hearersOf(subject)
    const carried = this.#carried(message)
    // Nobody listens: the broker says so, if it is reached.
    if (hearers.length === 0) return this.#o.weather.isCut(from, { node: null }) ? null : 'no_responder'
    for (const subscription of hearers) {
      this.#leg(from, subscription.process, () => {
        if (!subscription.isOpen) return
        for (const watcher of this.#watchers) watcher.delivered?.(subject, carried, from.node)
        subscription.handler(carried, subject, (answer) => {
          if (!subscription.process.isAlive) return
          for (const watcher of this.#watchers) watcher.answered?.(carried, answer)
          reply(answer, subscription.process)
        })
      })
    }
    return null
  }

  /** One way of one message: not at all, once or more often, now, late, or when it is let go. */
  #leg(from: Process, to: Process, arrive: () => void): void {
    const { clock, weather } = this.#o
    const { isLost, copies, delaysMs, hold } = weather.passage(from, to)
    if (isLost) return
    if (this.#brokerAbsences > 0) {
      this.lostWithBroker += 1
      return
    }
    const brokerStart = this.#brokerStart
    const arriveLate = (): void => {
      if (brokerStart !== this.#brokerStart) this.lostWithBroker += 1
      else if (!weather.isCut(from, to)) arrive()
    }
    for (let copy = 0; copy < copies; copy++) {
      const delayMs = delaysMs[copy] as DurationMs
      if (hold !== null)
        hold(delayMs === 0 ? arriveLate : () => clock.at(clock.now() + delayMs, arriveLate, RANK_MESSAGE))
      else if (delayMs > 0) clock.at(clock.now() + delayMs, arriveLate, RANK_MESSAGE)
      else if (this.#depth >= MAX_DEPTH) clock.soon(arrive, RANK_MESSAGE)
      else this.#arriveNow(arrive)
    }
  }

  /** A message that takes no time is heard before its sender goes on. */
  #arriveNow(arrive: () => void): void {
    this.#depth += 1
    try {
      arrive()
    } finally {
      this.#depth -= 1
    }
  }

  #hearersOf(subject: string): readonly Subscription[] {
    let hearers = this.#bySubject.get(subject)
    if (hearers === undefined) {
      hearers = this.#subscriptions.filter((subscription) => isFor(subscription, subject))
      this.#bySubject.set(subject, hearers)
    }
    return hearers
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
    if (this.#o.mode === 'reference') return message
    const decoded = decode(encode(message))
    if (!decoded.ok) throw new Error(`broken invariant: a message of ours does not decode: ${decoded.why}`)
    return decoded.envelope
  }
}

/** Between head and tail stands exactly one part. */
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
