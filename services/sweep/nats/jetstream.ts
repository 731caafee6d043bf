/**
 * The operations of JetStream that a sweep over machines needs, in its wire protocol: JSON requests to
 * `$JS.API.…`, acknowledgements to the reply subject of a message. docs.nats.io, "JetStream wire API
 * reference"; docs/decisions/0049.
 */
import { headers, NoRespondersError } from '@nats-io/transport-node'
import type { Msg, NatsConnection } from '@nats-io/transport-node'

const API = '$JS.API'
const ANSWER_TIMEOUT_MS = 10_000
/**
 * The broker answers a request for a message at once when its wait ends; a broker that disconnected meanwhile
 * never answers.
 */
const ANSWER_GRACE_MS = 1_500
const NS_PER_MS = 1_000_000
const STREAM_NAME_EXISTS = 10058
const NOT_FOUND: ReadonlySet<number> = new Set([404, 408, 409])

/** The broker refused: its message and its error number. */
export class JetStreamError extends Error {
  override readonly name = 'JetStreamError'
  readonly code: number
  /** The broker's error number; 0: none. */
  readonly number: number

  constructor(message: string, code: number, number = 0, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.number = number
  }
}

export interface StreamConfig {
  readonly name: string
  readonly subjects: readonly string[]
  /** `workqueue`: a message is removed when it is acknowledged. */
  readonly retention: 'limits' | 'workqueue'
  readonly maxAgeMs: number
  /** Messages kept per subject, newest first. */
  readonly perSubject: number
  /** -1: no limit of the stream. */
  readonly maxMessages: number
  /** -1: no limit of the stream. */
  readonly maxBytes: number
  /** At its limit the stream drops the oldest messages, or else refuses new ones. */
  readonly isOldestDropped: boolean
}

export interface ConsumerConfig {
  readonly stream: string
  /** Null: it is removed when it is no longer used. */
  readonly durable: string | null
  readonly filter: string
  readonly ackWaitMs: number
}

export interface Delivery {
  readonly subject: string
  readonly data: Uint8Array
  /** 1 for the first delivery. */
  readonly deliveries: number
  /**
   * Marks the message as done, so that it is never delivered again; resolves when the broker has stored that.
   */
  ack(): Promise<void>
  /** Still working: restarts the time after which the message counts as lost. */
  working(): void
  /** Returns the message for another consumer after the delay. */
  redeliver(delayMs: number): Promise<void>
}

export class JetStream {
  readonly #connection: NatsConnection

  constructor(connection: NatsConnection) {
    this.#connection = connection
  }

  /** Throws JetStreamError; for a broker without JetStream it says how to enable it. */
  async ensureStream({ name, subjects, retention, maxAgeMs, ...limits }: StreamConfig): Promise<void> {
    const config = {
      name,
      subjects,
      retention,
      storage: 'file',
      discard: limits.isOldestDropped ? 'old' : 'new',
      num_replicas: 1,
      max_age: maxAgeMs * NS_PER_MS,
      max_msgs_per_subject: limits.perSubject,
      max_msgs: limits.maxMessages,
      max_bytes: limits.maxBytes,
      allow_direct: retention === 'limits',
    }
    try {
      await this.#ask(`STREAM.CREATE.${name}`, config)
    } catch (error) {
      // An earlier version created it with other limits.
      if (!(error instanceof JetStreamError) || error.number !== STREAM_NAME_EXISTS) throw error
      await this.#ask(`STREAM.UPDATE.${name}`, config)
    }
  }

  /** Throws JetStreamError with code 404 when the consumer does not exist. */
  async requireConsumer(stream: string, consumer: string): Promise<void> {
    await this.#ask(`CONSUMER.INFO.${stream}.${consumer}`, null)
  }

  /** @returns its name */
  async ensureConsumer({ stream, durable, filter, ackWaitMs }: ConsumerConfig): Promise<string> {
    const config = {
      ...(durable === null ? { inactive_threshold: 60_000 * NS_PER_MS } : { durable_name: durable }),
      ack_policy: 'explicit',
      deliver_policy: 'all',
      filter_subject: filter,
      ack_wait: ackWaitMs * NS_PER_MS,
      max_deliver: -1,
      max_ack_pending: 100_000,
    }
    const place =
      durable === null ? `CONSUMER.CREATE.${stream}` : `CONSUMER.DURABLE.CREATE.${stream}.${durable}`
    const { name } = await this.#ask<{ readonly name: string }>(place, { stream_name: stream, config })
    return name
  }

  /** True if no client requests its messages and no message is being processed. */
  async isUnattended(stream: string, consumer: string): Promise<boolean> {
    const info = await this.#ask<{ readonly num_waiting: number; readonly num_ack_pending: number }>(
      `CONSUMER.INFO.${stream}.${consumer}`,
      null,
    )
    return info.num_waiting === 0 && info.num_ack_pending === 0
  }

  /** Resolves when the broker has it on disk. A repeated id within two minutes is stored once. */
  async publish(subject: string, data: Uint8Array | string, id?: string): Promise<void> {
    const head = headers()
    if (id !== undefined) head.set('Nats-Msg-Id', id)
    const answer = await this.#connection.request(subject, data, {
      timeout: ANSWER_TIMEOUT_MS,
      headers: head,
    })
    throwIfRefused(answer.json<ApiAnswer>())
  }

  /** Returns the last message of a subject, or null. */
  async last(stream: string, subject: string): Promise<Uint8Array | null> {
    // The subject is part of the request, so that the broker can permit some of them only.
    const answer = await this.#connection.request(`${API}.DIRECT.GET.${stream}.${subject}`, '', {
      timeout: ANSWER_TIMEOUT_MS,
    })
    return statusOf(answer) === 404 ? null : answer.data
  }

  /** Returns the next message within the time, else null. */
  async next(stream: string, consumer: string, waitMs: number): Promise<Delivery | null> {
    const wanted = JSON.stringify({ batch: 1, expires: waitMs * NS_PER_MS })
    const message = await this.#connection.request(`${API}.CONSUMER.MSG.NEXT.${stream}.${consumer}`, wanted, {
      timeout: waitMs + ANSWER_GRACE_MS,
      // The message arrives on the subject of the stream, so the shared inbox of a connection could not match
      // it to its request.
      noMux: true,
    })
    const status = statusOf(message)
    if (NOT_FOUND.has(status)) return null
    if (status !== 0) throw new JetStreamError(message.headers?.description ?? `status ${status}`, status)
    return this.#deliveryOf(message)
  }

  async purge(stream: string, filter: string): Promise<void> {
    await this.#ask(`STREAM.PURGE.${stream}`, { filter })
  }

  #deliveryOf(message: Msg): Delivery {
    const reply = message.reply ?? ''
    const connection = this.#connection
    return {
      subject: message.subject,
      data: message.data,
      deliveries: deliveriesIn(reply),
      ack: async () => void (await connection.request(reply, '+ACK', { timeout: ANSWER_TIMEOUT_MS })),
      working: () => connection.publish(reply, '+WPI'),
      redeliver: async (delayMs) => {
        connection.publish(reply, `-NAK ${JSON.stringify({ delay: delayMs * NS_PER_MS })}`)
        await connection.flush()
      },
    }
  }

  async #ask<T>(place: string, body: unknown): Promise<T> {
    let answer: Msg
    try {
      answer = await this.#connection.request(`${API}.${place}`, body === null ? '' : JSON.stringify(body), {
        timeout: ANSWER_TIMEOUT_MS,
      })
    } catch (error) {
      throw error instanceof NoRespondersError || (error as Error).cause instanceof NoRespondersError
        ? new JetStreamError(
            'the broker has no JetStream: start nats-server with -js, or with jetstream in its configuration',
            503,
            0,
            {
              cause: error,
            },
          )
        : error
    }
    const content = answer.json<ApiAnswer & T>()
    throwIfRefused(content)
    return content
  }
}

interface ApiAnswer {
  readonly error?: { readonly code: number; readonly err_code?: number; readonly description: string }
}

function throwIfRefused({ error }: ApiAnswer): void {
  if (error !== undefined) throw new JetStreamError(error.description, error.code, error.err_code)
}

/** 0: a message; otherwise a status of the broker. */
function statusOf({ headers: head }: Msg): number {
  return head?.code ?? 0
}

/**
 * `$JS.ACK.<stream>.<consumer>.<deliveries>.…`; with a domain and an account two tokens precede the stream.
 */
function deliveriesIn(reply: string): number {
  const tokens = reply.split('.')
  return Number(tokens[tokens.length > 9 ? 6 : 4])
}
