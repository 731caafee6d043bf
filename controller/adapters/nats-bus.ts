/**
 * The bus over a NATS broker. It connects in the background and reconnects forever; without a connection a
 * request fails at once, and publications are dropped: reliable senders retry (docs/protocol.md). Incoming
 * data is untrusted: malformed messages are counted, reported, and never answered.
 */
import { randomBytes } from 'node:crypto'
import { PermissionViolationError } from '@nats-io/transport-node'
import type { Msg, NatsConnectionImpl, Subscription } from '@nats-io/transport-node'
import { decode, encode } from '../../protocol/codec.ts'
import { INBOX, whyNoAnswerTo } from '../../protocol/inbox.ts'
import type { MalformedReason } from '../../protocol/codec.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { Bus, Handler, NoAnswer, Reply, RequestOutcome } from '../ports/bus.ts'
import { Arrivals } from './nats/arrivals.ts'
import { callThrowingAsync } from './nats/throw-async.ts'
import { ConnectionLoop } from './nats/connection-loop.ts'
import { DEFAULT_LIMITS, newCounts } from './nats/limits.ts'
import type { BusCounts, NatsLimits } from './nats/limits.ts'
import { loginOptions } from './nats/login.ts'
import type { NatsAuth, NatsTls } from './nats/login.ts'
import { Requests } from './nats/requests.ts'
import { unsentBytes } from './nats/transport.ts'
import { errorText } from '../../protocol/error-text.ts'

export type { BusCounts, NatsLimits } from './nats/limits.ts'
export type { NatsAuth, NatsTls } from './nats/login.ts'

export interface NatsBusOptions {
  /**
   * `nats://host:port` or `tls://host:port`, tried in any order. Other brokers of a cluster are not
   * discovered.
   */
  readonly urls: readonly string[]
  /** The name of this connection in the broker's monitoring. */
  readonly name: string
  /**
   * Subject prefix of answers; begins with `_INBOX`. Our broker configuration gives each user its own
   * (protocol/inbox.ts).
   */
  readonly inboxPrefix?: string
  readonly auth: NatsAuth
  /** Null: as the broker requires. Otherwise a broker without TLS is refused. */
  readonly tls: NatsTls | null
  /** `connected` once the subscriptions are active. `detail`: one line for the log. */
  readonly onState: (state: 'connected' | 'disconnected' | 'closed', detail: string) => void
  /**
   * Called for an incoming payload that is not a message, or (`unsendable`) for an outgoing one that cannot
   * be sent; `why` names the field.
   */
  readonly onBadMessage: (subject: string, why: string, reason: MalformedReason | 'unsendable') => void
  /**
   * Called when messages for this pattern are dropped because too many wait; called again after the backlog
   * has been processed.
   */
  readonly onSlowConsumer?: (pattern: string) => void
  /** Called when the broker's permissions forbid an operation. */
  readonly onDenied?: (operation: 'publish' | 'subscription', subject: string) => void
  readonly limits?: Partial<NatsLimits>
}

export interface NatsBus extends Bus {
  readonly isConnected: boolean
  readonly counts: BusCounts
  /** Closes at once; requests in flight end as `disconnected`. */
  close(): Promise<void>
}

/** Returns at once; `onState` reports the connection. */
export function connectNatsBus(options: NatsBusOptions): NatsBus {
  return new TransportBus(options)
}

const CONNECT_WITHIN_MS: DurationMs = 5_000
/** Unanswered pings after which the next due ping counts the broker as lost. */
const MAX_PINGS_OUT = 2
/** Maximum time for requests in flight when the bus is drained. */
const DRAIN_WITHIN_MS: DurationMs = 2_000
const NO_RESPONDERS = 503

interface Listening {
  readonly pattern: string
  readonly handler: Handler
  subscription: Subscription | null
  isOverrun: boolean
}

class TransportBus implements NatsBus {
  readonly counts = newCounts()
  readonly #options: NatsBusOptions
  readonly #limits: NatsLimits
  readonly #arrivals: Arrivals
  readonly #requests: Requests
  readonly #loop: ConnectionLoop
  readonly #listening = new Set<Listening>()
  /** Random prefix of the tokens of requests, so that others cannot guess it. */
  readonly #inbox: string
  #connection: NatsConnectionImpl | null = null
  /** Its subscriptions are active. */
  #isReady = false
  #state: 'open' | 'draining' | 'closed' = 'open'
  /** Listeners were told that the connection is lost. */
  #isAway = false
  readonly #onConnection = new Set<(isConnected: boolean) => void>()

  constructor(options: NatsBusOptions) {
    this.#options = options
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits }
    this.#arrivals = new Arrivals(this.#limits)
    this.#requests = new Requests(() => (this.counts.timeouts += 1))
    this.#inbox = `${options.inboxPrefix ?? INBOX}.${randomBytes(16).toString('hex')}.`
    this.#loop = new ConnectionLoop(
      {
        servers: [...options.urls],
        name: options.name,
        timeout: CONNECT_WITHIN_MS,
        pingInterval: this.#limits.pingEveryMs,
        maxPingOut: MAX_PINGS_OUT,
        ignoreClusterUpdates: true,
        ...loginOptions(options.urls, options.auth, options.tls),
      },
      { onUp: (connection) => this.#up(connection), onDown: (why) => this.#down(why) },
    )
    void this.#loop.run()
  }

  get isConnected(): boolean {
    return this.#isReady
  }

  publish(subject: string, message: Envelope): void {
    if (this.#state !== 'open' || !this.#send(subject, message, undefined)) this.counts.dropped += 1
  }

  request(
    subject: string,
    message: Envelope,
    timeoutMs: DurationMs,
    done: (outcome: RequestOutcome) => void,
  ): void {
    this.counts.requests += 1
    if (!this.#isReady || this.#state !== 'open') return this.#fail('disconnected', done)
    if (this.#requests.count >= this.#limits.maxOutstandingRequests) return this.#fail('unsendable', done)
    const token = this.#requests.open(subject, timeoutMs, done)
    if (this.#send(subject, message, this.#inbox + token)) return
    this.#requests.forget(token)
    this.#fail('unsendable', done)
  }

  subscribe(pattern: string, handler: Handler): () => void {
    const listening: Listening = { pattern, handler, subscription: null, isOverrun: false }
    this.#listening.add(listening)
    if (this.#connection !== null) this.#listen(this.#connection, listening)
    return () => {
      this.#listening.delete(listening)
      listening.subscription?.unsubscribe()
      listening.subscription = null
    }
  }

  onConnection(listener: (isConnected: boolean) => void): () => void {
    this.#onConnection.add(listener)
    // Asynchronous, and skipped if the connection was restored in the meantime.
    if (this.#isAway)
      setImmediate(
        () => this.#isAway && this.#onConnection.has(listener) && callThrowingAsync(() => listener(false)),
      )
    return () => this.#onConnection.delete(listener)
  }

  /**
   * Unsubscribes, handles messages already received, waits for requests in flight and for the broker to
   * receive everything sent.
   */
  async drain(): Promise<void> {
    if (this.#state !== 'open') return
    this.#state = 'draining'
    if (this.#connection !== null && this.#isReady)
      await within(DRAIN_WITHIN_MS, this.#finish(this.#connection))
    await this.close()
  }

  async close(): Promise<void> {
    if (this.#state === 'closed') return
    this.#state = 'closed'
    this.#lose()
    await this.#loop.close()
    callThrowingAsync(() => this.#options.onState('closed', ''))
  }

  async #finish(connection: NatsConnectionImpl): Promise<void> {
    const subscriptions = [...this.#listening].flatMap(({ subscription }) =>
      subscription === null ? [] : [subscription],
    )
    await Promise.allSettled(subscriptions.map((subscription) => subscription.drain()))
    this.#arrivals.finish()
    await this.#requests.settled()
    await connection.flush().catch(() => {})
  }

  // ── connection ──

  async #up(connection: NatsConnectionImpl): Promise<void> {
    this.#connection = connection
    void this.#watch(connection)
    connection.subscribe(`${this.#inbox}*`, { callback: (_error, message) => this.#answer(message) })
    for (const listening of this.#listening) this.#listen(connection, listening)
    await connection.flush()
    if (this.#connection !== connection) return
    this.#isReady = true
    this.counts.connections += 1
    this.#tell(true)
    callThrowingAsync(() => this.#options.onState('connected', connection.getServer()))
  }

  #down(why: string): void {
    this.#lose()
    this.#tell(false)
    callThrowingAsync(() => this.#options.onState('disconnected', why))
  }

  #tell(isConnected: boolean): void {
    if (this.#isAway === !isConnected || this.#state !== 'open') return
    this.#isAway = !isConnected
    for (const listener of this.#onConnection) callThrowingAsync(() => listener(isConnected))
  }

  #lose(): void {
    this.#connection = null
    this.#isReady = false
    for (const listening of this.#listening) listening.subscription = null
    this.counts.disconnected += this.#requests.count
    this.#requests.closeAll({ answered: false, why: 'disconnected' })
  }

  async #watch(connection: NatsConnectionImpl): Promise<void> {
    for await (const status of connection.status()) {
      if (status.type !== 'error' || !(status.error instanceof PermissionViolationError)) continue
      const { operation, subject } = status.error
      this.counts.denied += 1
      if (operation === 'publish')
        this.counts.noResponders += this.#requests.closeAll({ answered: false, why: 'no_responder' }, subject)
      callThrowingAsync(() => this.#options.onDenied?.(operation, subject))
    }
  }

  // ── out ──

  #fail(why: NoAnswer, done: (outcome: RequestOutcome) => void): void {
    if (why === 'unsendable') this.counts.unsendable += 1
    else this.counts.disconnected += 1
    // Never before `request` has returned: a caller that retries at once would recurse without end.
    setImmediate(() => done({ answered: false, why }))
  }

  /** Returns false if it cannot be sent. */
  #send(subject: string, message: Envelope, reply: string | undefined): boolean {
    const connection = this.#connection
    if (connection === null || unsentBytes(connection) > this.#limits.maxUnsentBytes) return false
    try {
      connection.publish(subject, encode(message), reply === undefined ? {} : { reply })
      return true
    } catch (error) {
      // Too large for the protocol or this broker, or an invalid subject.
      const why = errorText(error)
      callThrowingAsync(() => this.#options.onBadMessage(subject, why, 'unsendable'))
      return false
    }
  }

  // ── in ──

  #listen(connection: NatsConnectionImpl, listening: Listening): void {
    listening.subscription = connection.subscribe(listening.pattern, {
      callback: (error, message) => {
        if (error === null) this.#arrive(connection, listening, message)
      },
    })
  }

  #arrive(connection: NatsConnectionImpl, listening: Listening, message: Msg): void {
    const isTaken = this.#arrivals.take({
      bytes: message.data.byteLength,
      handle: () => this.#handle(connection, listening, message),
    })
    if (isTaken) return
    this.counts.overrun += 1
    if (listening.isOverrun) return
    listening.isOverrun = true
    callThrowingAsync(() => this.#options.onSlowConsumer?.(listening.pattern))
  }

  #handle(connection: NatsConnectionImpl, listening: Listening, message: Msg): void {
    if (this.#arrivals.count === 0) listening.isOverrun = false
    const why = message.reply ? whyNoAnswerTo(message.subject, message.reply) : null
    if (why !== null) return this.#refuse(message.subject, 'bad_field', `reply: ${why}`)
    const envelope = this.#read(message, message.subject)
    if (envelope === null || !this.#listening.has(listening)) return
    this.counts.handled += 1
    callThrowingAsync(() => listening.handler(envelope, message.subject, this.#replyTo(connection, message)))
  }

  /** A reply uses the connection of its request: the broker would refuse it on the next connection. */
  #replyTo(connection: NatsConnectionImpl, message: Msg): Reply {
    let isOver = false
    return (answer) => {
      if (isOver) return
      isOver = true
      const to = message.reply
      if (to === undefined || to === '') return
      if (this.#connection !== connection || !this.#send(to, answer, undefined)) this.counts.dropped += 1
    }
  }

  #answer(message: Msg): void {
    const token = message.subject.slice(this.#inbox.length)
    const subject = this.#requests.subjectOf(token)
    if (subject === null) {
      this.counts.lateAnswers += 1
    } else if (message.data.byteLength === 0 && message.headers?.code === NO_RESPONDERS) {
      this.counts.noResponders += 1
      this.#requests.close(token, { answered: false, why: 'no_responder' })
    } else {
      // A malformed message is not an answer: the right one may follow.
      const answer = this.#read(message, subject)
      if (answer === null) return
      this.counts.answers += 1
      this.#requests.close(token, { answered: true, answer })
    }
  }

  #read(message: Msg, subject: string): Envelope | null {
    const decoded = decode(message.data)
    if (decoded.ok) return decoded.envelope
    this.#refuse(subject, decoded.reason, decoded.why)
    return null
  }

  #refuse(subject: string, reason: MalformedReason, why: string): void {
    this.counts.malformed[reason] += 1
    callThrowingAsync(() => this.#options.onBadMessage(subject, why, reason))
  }
}

function within(ms: DurationMs, work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    void work.finally(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}
