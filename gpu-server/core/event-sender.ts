/**
 * Sends the outbox, one message at a time, and repeats each with the same id until it is acknowledged (R1,
 * R8).
 */
import type { Envelope } from '../../protocol/envelope.ts'
import type { NodeEvent, NodeEvents } from '../../protocol/messages.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { Bus, RequestOutcome } from '../../controller/ports/bus.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import { RANK_MESSAGE } from '../../controller/ports/clock.ts'
import type { RandomStream } from '../../controller/ports/random.ts'
import type { DurableState } from './durable-state.ts'
import type { Envelopes } from './envelopes.ts'
import { ANSWER_TIMEOUT_MS, RETRY_FIRST_MS, jittered, nextRetryMs } from './retry.ts'

export interface EventSenderOptions {
  readonly nodeId: string
  readonly subject: string
  readonly bus: Bus
  readonly clock: Clock
  readonly random: RandomStream
  readonly durable: DurableState
  readonly envelopes: Envelopes
  readonly onAcknowledged: (events: readonly NodeEvent[]) => void
  /** Called for an answer that is not an acknowledgement. */
  readonly onUnexpectedAnswer: (asked: Envelope, answer: Envelope) => void
}

export class EventSender {
  readonly #options: EventSenderOptions
  /** True once the controller knows this boot: events sent before would be refused. */
  #isOpen = false
  #isPlanned = false
  /** A message is in flight, or waits for its retry. */
  #isSending = false
  #retryMs: DurationMs = RETRY_FIRST_MS
  #inFlight: Envelope<NodeEvents> | null = null
  /** The highest epoch when a message was last sent, or could not be saved. */
  #triedInEpoch = 0
  #retry: () => void = () => {}
  #cancelRetry: () => void = () => {}
  readonly #flush = (): void => this.#send(RETRY_FIRST_MS)
  /** Shared by all requests except dropped ones: there is never more than one in flight. */
  #listener = this.#newListener()

  constructor(options: EventSenderOptions) {
    this.#options = options
  }

  open(): void {
    this.#isOpen = true
    this.plan()
  }

  close(): void {
    this.#isOpen = false
  }

  /**
   * Repeats at once what was sent to the controller of an earlier epoch, and drops that request: its receiver
   * may be stopped, and would answer only after the timeout.
   */
  repeatToNewController(): void {
    if (!this.#isSending || this.#triedInEpoch === this.#options.durable.highestEpoch) return
    this.#retryMs = RETRY_FIRST_MS
    const message = this.#inFlight
    if (message === null) {
      this.#cancelRetry()
      this.#retry()
    } else {
      this.#listener = this.#newListener()
      this.#again(message)
    }
  }

  /** Sends the outbox at the end of this instant, unless a message is in flight. */
  plan(): void {
    if (this.#isPlanned || this.#isSending || !this.#isOpen || this.#options.durable.outbox.isEmpty) return
    this.#isPlanned = true
    this.#options.clock.soon(this.#flush, RANK_MESSAGE)
  }

  /** Saves, then sends (R1): while the disk fails, nothing is sent. */
  #send(retryMs: DurationMs): void {
    const { durable, envelopes, nodeId } = this.#options
    this.#isPlanned = false
    this.#isSending = false
    if (!this.#isOpen || durable.outbox.isEmpty) return
    this.#isSending = true
    this.#retryMs = retryMs
    this.#triedInEpoch = durable.highestEpoch
    if (durable.persist())
      this.#request(envelopes.seal({ op: 'events', node_id: nodeId, entries: durable.outbox.head() }))
    else this.#later(() => this.#send(this.#retryMs))
  }

  #request(message: Envelope<NodeEvents>): void {
    const { bus, durable, subject } = this.#options
    this.#inFlight = message
    this.#triedInEpoch = durable.highestEpoch
    bus.request(subject, message, ANSWER_TIMEOUT_MS, this.#listener)
  }

  #newListener(): (outcome: RequestOutcome) => void {
    const listener = (outcome: RequestOutcome): void => {
      const message = this.#inFlight
      if (message !== null && listener === this.#listener) this.#ended(message, outcome)
    }
    return listener
  }

  #ended(message: Envelope<NodeEvents>, outcome: RequestOutcome): void {
    this.#inFlight = null
    if (this.#isAcknowledged(message, outcome)) {
      this.#isSending = false
      this.plan()
    } else if (outcome.answered && !this.#options.durable.isJudged(message, outcome.answer))
      this.#later(() => this.#send(this.#retryMs))
    else this.#later(() => this.#again(message))
  }

  /**
   * Repeats the message with the same id; after a new boot it becomes a new message, because an old one gets
   * no answer (R6).
   */
  #again(message: Envelope<NodeEvents>): void {
    if (!this.#isOpen || message.boot !== this.#options.durable.boot) this.#send(RETRY_FIRST_MS)
    else this.#request(message)
  }

  /**
   * Also false for an answer that acknowledges no entry of the message: it is repeated later, not at once.
   */
  #isAcknowledged(message: Envelope<NodeEvents>, outcome: RequestOutcome): boolean {
    const { durable } = this.#options
    if (!this.#isOpen || !outcome.answered || !durable.acceptsAnswer(message, outcome.answer)) return false
    const { body } = outcome.answer
    if (body.op !== 'events_ack') {
      this.#options.onUnexpectedAnswer(message, outcome.answer)
      return false
    }
    const last = message.body.entries.at(-1)?.n ?? 0
    const events = durable.acknowledge(Math.min(body.up_to, last))
    this.#options.onAcknowledged(events)
    return events.length > 0
  }

  /** Runs `fn` after the current retry delay and increases the delay. */
  #later(fn: () => void): void {
    const { clock, random } = this.#options
    this.#retry = fn
    this.#cancelRetry = clock.at(clock.now() + jittered(this.#retryMs, random), fn, RANK_MESSAGE)
    this.#retryMs = nextRetryMs(this.#retryMs)
  }
}
