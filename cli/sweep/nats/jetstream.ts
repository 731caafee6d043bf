/**
 * The few words of JetStream that a sweep over machines needs, said as its wire protocol has them: JSON
 * requests to `$JS.API.…`, acknowledgements to the reply subject of a message. docs.nats.io, "JetStream wire
 * API reference"; docs/decisions/0049.
 */
import { headers, NoRespondersError } from '@nats-io/transport-node'
import type { Msg, NatsConnection } from '@nats-io/transport-node'

const API = '$JS.API'
const ANSWER_TIMEOUT_MS = 10_000
/**
 * After the end of its wait a request for a message is answered at once; a broker that went away meanwhile
 * never answers it.
 */
const ANSWER_GRACE_MS = 1_500
const NS_PER_MS = 1_000_000
const STREAM_NAME_EXISTS = 10058
const NOT_FOUND: ReadonlySet<number> = new Set([404, 408, 409])

/** The broker refused: what it says, and its own number for it. */
export class JetStreamError extends Error {
  override readonly name = 'JetStreamError'
  readonly code: number
  /** The broker's own number of the error; 0: none. */
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
  /** `workqueue`: a message is gone when it is acknowledged. */
  readonly retention: 'limits' | 'workqueue'
  readonly maxAgeMs: number
  /** Messages of one subject that are kept, the last ones. */
  readonly perSubject: number
  /** -1: no limit of the stream's own. */
  readonly maxMessages: number
  /** -1: no limit of the stream's own. */
  readonly maxBytes: number
  /** At its limit the oldest messages are dropped, or else new ones refused. */
  readonly isOldestDropped: boolean
}

export interface ConsumerConfig {
  readonly stream: string
  /** Null: it goes when nobody asks it any more. */
  readonly durable: string | null
  readonly filter: string
  readonly ackWaitMs: number
}

export interface Delivery {
  readonly subject: string
  readonly data: Uint8Array
  /** 1 for the first time. */
  readonly deliveries: number
  /** It is done, and never given out again; resolves when the broker has written that down. */
  ack(): Promise<void>
  /** Still at work: the time until it counts as lost begins anew. */
  working(): void
  /** Not for us: another may have it after so long. */
  redeliver(delayMs: number): Promise<void>
}

export class JetStream {
  readonly #connection: NatsConnection

  constructor(connection: NatsConnection) {
    this.#connection = connection
  }

  /** Throws JetStreamError, for a broker without JetStream with the way to get it. */
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
      // An earlier version made it with other limits.
      if (!(error instanceof JetStreamError) || error.number !== STREAM_NAME_EXISTS) throw error
      await this.#ask(`STREAM.UPDATE.${name}`, config)
    }
  }

  /** Throws JetStreamError with code 404 when the consumer is not there. */
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

  /** Nobody asks for its messages, and nobody works on one. */
  async isUnattended(stream: string, consumer: string): Promise<boolean> {
    const info = await this.#ask<{ readonly num_waiting: number; readonly num_ack_pending: number }>(
      `CONSUMER.INFO.${stream}.${consumer}`,
      null,
    )
    return info.num_waiting === 0 && info.num_ack_pending === 0
  }

  /** Resolves when the broker has it on disk. The same id twice within two minutes is kept once. */
  async publish(subject: string, data: Uint8Array | string, id?: string): Promise<void> {
    const head = headers()
    if (id !== undefined) head.set('Nats-Msg-Id', id)
    const answer = await this.#connection.request(subject, data, {
      timeout: ANSWER_TIMEOUT_MS,
      headers: head,
    })
    throwIfRefused(answer.json<ApiAnswer>())
  }

  /** The last message of a subject; null: there is none. */
  async last(stream: string, subject: string): Promise<Uint8Array | null> {
    // The subject stands in the request, so that the broker can allow some of them only.
    const answer = await this.#connection.request(`${API}.DIRECT.GET.${stream}.${subject}`, '', {
      timeout: ANSWER_TIMEOUT_MS,
    })
    return statusOf(answer) === 404 ? null : answer.data
  }

  /** The next message, when there is one within so long; else null. */
  async next(stream: string, consumer: string, waitMs: number): Promise<Delivery | null> {
    const wanted = JSON.stringify({ batch: 1, expires: waitMs * NS_PER_MS })
    const message = await this.#connection.request(`${API}.CONSUMER.MSG.NEXT.${stream}.${consumer}`, wanted, {
      timeout: waitMs + ANSWER_GRACE_MS,
      // What comes bears the subject of the stream, by which the shared inbox of a connection would not know
      // whose answer it is.
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

/** 0: a message; else a status of the broker's in its place. */
function statusOf({ headers: head }: Msg): number {
  return head?.code ?? 0
}

/**
 * `$JS.ACK.<stream>.<consumer>.<deliveries>.…`; with a domain and an account two tokens stand before the
 * stream.
 */
function deliveriesIn(reply: string): number {
  const tokens = reply.split('.')
  return Number(tokens[tokens.length > 9 ? 6 : 4])
}
