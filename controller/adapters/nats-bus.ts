/**
 * The bus over a NATS broker. It connects in the background and again for ever; until then, and in between, a
 * request fails at once, and what is published is dropped: whoever must arrive retries (docs/protocol.md).
 * What comes in is hostile: it is counted, told, and never answered.
 */
import { randomBytes } from 'node:crypto'
import { PermissionViolationError } from '@nats-io/transport-node'
import type { Msg, NatsConnectionImpl, Subscription } from '@nats-io/transport-node'
import { decode, encode } from '../../protocol/codec.ts'
import { INBOX, whyNoAnswerTo } from '../../protocol/inbox.ts'
import type { MalformedReason } from '../../protocol/codec.ts'
import type { Envelope } from '../../protocol/messages.ts'
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

export type { BusCounts, NatsLimits } from './nats/limits.ts'
export type { NatsAuth, NatsTls } from './nats/login.ts'

export interface NatsBusOptions {
  /**
   * `nats://host:port` or `tls://host:port`, tried in any order; only these: other brokers of a cluster are
   * not learned.
   */
  readonly urls: readonly string[]
  /** As the broker shows this connection to its operator. */
  readonly name: string
  /**
   * Where answers come in; begins with `_INBOX`; our broker configuration gives each user one of its own
   * (protocol/inbox.ts).
   */
  readonly inboxPrefix?: string
  readonly auth: NatsAuth
  /** Null: as the broker wants it. Otherwise a broker without TLS is none. */
  readonly tls: NatsTls | null
  /** `connected` once the subscriptions hold. `detail`: one line for people. */
  readonly onState: (state: 'connected' | 'disconnected' | 'closed', detail: string) => void
  /**
   * Something came in that is no message, or (`unsendable`) a message of ours cannot be sent; `why` names the
   * field.
   */
  readonly onBadMessage: (subject: string, why: string, reason: MalformedReason | 'unsendable') => void
  /**
   * Messages for this pattern were dropped because too many wait; told again after they have been caught up
   * with.
   */
  readonly onSlowConsumer?: (pattern: string) => void
  /** The broker's permissions forbid this. */
  readonly onDenied?: (operation: 'publish' | 'subscription', subject: string) => void
  readonly limits?: Partial<NatsLimits>
}

export interface NatsBus extends Bus {
  readonly isConnected: boolean
  readonly counts: BusCounts
  /** Ends at once; requests under way end as `disconnected`. */
  close(): Promise<void>
}

/** Returns at once; `onState` says when it is connected. */
export function connectNatsBus(options: NatsBusOptions): NatsBus {
  return new TransportBus(options)
}

const CONNECT_WITHIN_MS: DurationMs = 5_000
/** Pings without an answer; one more is due, and the broker counts as gone. */
const MAX_PINGS_OUT = 2
/** What is under way when the bus is drained may take so long. */
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
  /** Before the token of each request; nobody else can guess it. */
  readonly #inbox: string
  #connection: NatsConnectionImpl | null = null
  /** Its subscriptions hold. */
  #isReady = false
  #state: 'open' | 'draining' | 'closed' = 'open'
  /** It was told that the connection is away. */
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
    // Not from within the call, and not when it has come back before.
    if (this.#isAway)
      setImmediate(
        () => this.#isAway && this.#onConnection.has(listener) && callThrowingAsync(() => listener(false)),
      )
    return () => this.#onConnection.delete(listener)
  }

  /**
   * Hears nothing more, handles what came in, waits for requests under way and for the broker to have all
   * that was sent.
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
    // Never before `request` has returned: who tries again at once would not get out of it.
    setImmediate(() => done({ answered: false, why }))
  }

  /** False: it cannot be sent, and never was. */
  #send(subject: string, message: Envelope, reply: string | undefined): boolean {
    const connection = this.#connection
    if (connection === null || unsentBytes(connection) > this.#limits.maxUnsentBytes) return false
    try {
      connection.publish(subject, encode(message), reply === undefined ? {} : { reply })
      return true
    } catch (error) {
      // Too large for the protocol or for this broker, or a subject that is none.
      const why = error instanceof Error ? error.message : String(error)
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

  /**
   * A reply goes over the connection on which its request came: over the next the broker would not let it
   * pass.
   */
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
      // One that is malformed is no answer: the right one may follow.
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
