/** One request to the controller: time limit, size limit, typed errors, and retries where they are safe. */
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { isRepeatable, type Call, type Query } from './call.ts'
import { ApiError, ConnectionError, UnexpectedAnswer } from './errors.ts'
import { firstAnswer, patienceMs } from './first-answer.ts'
import { socketFetch, socketPathIn } from './socket-fetch.ts'
import { upgraded } from './upgrade.ts'

/** Time limit for a complete answer. */
const TIMEOUT_MS = 30_000
/** Maximum size of an answer. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
/** Maximum pause before a retry, even if Retry-After is longer. */
const MAX_PAUSE_MS = 10_000
const FIRST_PAUSE_MS = 200

export const DEFAULT_URL = 'http://127.0.0.1:30080'

export interface TransportOptions {
  /** Base addresses of the controllers of one cluster, without /api/v1; any of them answers for it. */
  readonly urls: readonly string[]
  /** Sent as Bearer; null: none. */
  readonly token: string | null
  /** Maximum attempts per request, where a retry is safe. */
  readonly attempts: number
  readonly signal: AbortSignal | null
}

interface Answer {
  readonly response: Response
  /** The address that answered. */
  readonly url: string
}

/** Node's error codes for a connection that was never established. */
const UNSENT_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOENT',
  'EACCES',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

export class Transport {
  readonly #options: TransportOptions
  /** The address that answered last. */
  #at = 0
  /** The newest event of any answer: no later answer is of an older state. */
  #eventSeq = 0

  constructor(options: TransportOptions) {
    this.#options = options
  }

  get url(): string {
    return this.#options.urls[this.#at] ?? DEFAULT_URL
  }

  /** Uses the next address, unless another call has left this one already. */
  #leave(url: string): void {
    if (this.url === url) this.#at = (this.#at + 1) % this.#options.urls.length
  }

  /**
   * Resolves with the JSON body of the answer, or null without a body. Retries requests that got 429 or were
   * never sent, and repeatable requests after a broken connection or 503.
   */
  async json<T>(call: Call): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once<T>(call)
      } catch (error) {
        if (attempt >= this.#options.attempts || !mayTryAgain(error, call)) throw this.#told(error)
        await pause(pauseMs(error, attempt), this.#signalOf(call))
      }
    }
  }

  /**
   * Resolves with the answer as it arrives: for streams, so without a time limit once it has started. Never
   * retries.
   */
  async open(call: Call): Promise<Response> {
    const limit = new AbortController()
    const timer = setTimeout(() => limit.abort(new DOMException('', 'TimeoutError')), TIMEOUT_MS)
    try {
      const answer = await this.#fetch(call, limit.signal)
      if (!answer.response.ok) throw this.#told(await this.#problemOf(answer))
      return answer.response
    } finally {
      clearTimeout(timer)
    }
  }

  /** Resolves with a connection that speaks the protocol. @param path with /api/v1; a secret */
  async upgrade(path: string, protocol: string): Promise<Duplex> {
    try {
      return await upgraded(this.url, path, protocol, TIMEOUT_MS)
    } catch (error) {
      throw this.broken(error, {})
    }
  }

  /** Accepts any status: for /readyz, which reports problems with 503. */
  async anyStatus<T>(call: Call): Promise<T> {
    return this.#bodyOf<T>(await this.#fetch(call, AbortSignal.timeout(TIMEOUT_MS)))
  }

  async #once<T>(call: Call): Promise<T> {
    const answer = await this.#fetch(call, AbortSignal.timeout(TIMEOUT_MS))
    if (!answer.response.ok) throw await this.#problemOf(answer)
    return answer.response.status === 204 ? (null as T) : this.#bodyOf<T>(answer)
  }

  /** Asks the addresses in turn, from the one that answered last (first-answer.ts). */
  async #fetch(call: Call, limit: AbortSignal): Promise<Answer> {
    const { urls } = this.#options
    const inTurn = urls.map((_, turn) => urls[(this.#at + turn) % urls.length] ?? DEFAULT_URL)
    return firstAnswer(inTurn, patienceMs(call), async (url, other) => {
      try {
        const response = await this.#fetchFrom(url, call, AbortSignal.any([limit, other]))
        if (response.status === 503) this.#leave(url)
        else if (!other.aborted) this.#at = urls.indexOf(url)
        return { response, url }
      } catch (error) {
        if (error instanceof ConnectionError && !other.aborted) this.#leave(url)
        throw error
      }
    })
  }

  async #fetchFrom(url: string, call: Call, signal: AbortSignal): Promise<Response> {
    const path = `/api/v1${call.path}${queryText(call.query)}`
    const headers: Record<string, string> = { accept: 'application/json', ...call.headers }
    if (this.#options.token !== null) headers['authorization'] = `Bearer ${this.#options.token}`
    if (this.#eventSeq > 0) headers['headroom-min-event-seq'] = String(this.#eventSeq)
    if (call.body !== undefined) headers['content-type'] ??= 'application/json'
    try {
      const asked = {
        method: call.method,
        headers,
        signal: AbortSignal.any([signal, ...this.#signals(call)]),
        ...(call.body === undefined ? {} : { body: encoded(call.body) }),
      }
      const socketPath = socketPathIn(url)
      const response =
        socketPath === null
          ? await fetch(`${url}${path}`, { ...asked, redirect: 'manual' })
          : await socketFetch(socketPath, path, asked)
      this.#note(response)
      return response
    } catch (error) {
      throw this.broken(error, call, url)
    }
  }

  #note({ headers }: Response): void {
    const seq = Number(headers.get('headroom-event-seq'))
    if (Number.isSafeInteger(seq)) this.#eventSeq = Math.max(this.#eventSeq, seq)
  }

  /** The caller learns that the store went back (a restore); what it asks next is answered from there. */
  #told(error: unknown): unknown {
    if (error instanceof ApiError && error.code === 'state_behind') this.#eventSeq = 0
    return error
  }

  /** Converts a failure below HTTP to an error of one line. An abort by the caller is returned as it is. */
  broken(error: unknown, call: Pick<Call, 'signal'>, url = this.url): unknown {
    if (this.#signals(call).some((signal) => signal.aborted)) return error
    if (error instanceof ApiError || error instanceof ConnectionError || error instanceof UnexpectedAnswer)
      return error
    if (error instanceof DOMException && error.name === 'TimeoutError') {
      return new ConnectionError(`${url} did not answer within ${TIMEOUT_MS / 1000} s`, false, error)
    }
    const code = codeOf(error)
    return new ConnectionError(
      `cannot reach the controller at ${url}: ${errorText(code, error)}`,
      UNSENT_CODES.has(code ?? ''),
      error,
    )
  }

  async #bodyOf<T>(answer: Answer): Promise<T> {
    const text = await this.#textOf(answer)
    try {
      return JSON.parse(text) as T
    } catch (error) {
      throw new UnexpectedAnswer(
        `${answer.url} answered ${answer.response.status} with a body that is not JSON. Is this the ` +
          'address of a controller?',
        {
          cause: error,
        },
      )
    }
  }

  async #textOf({ response, url }: Answer): Promise<string> {
    const chunks: Uint8Array[] = []
    let size = 0
    try {
      for await (const chunk of response.body ?? []) {
        size += chunk.length
        if (size > MAX_ANSWER_BYTES)
          throw new UnexpectedAnswer(`the answer of ${url} is larger than ${MAX_ANSWER_BYTES} bytes`)
        chunks.push(chunk)
      }
    } catch (error) {
      throw this.broken(error, {}, url)
    }
    return Buffer.concat(chunks).toString('utf8')
  }

  async #problemOf(answer: Answer): Promise<Error> {
    const { response, url } = answer
    const isProblem = (response.headers.get('content-type') ?? '').startsWith('application/problem+json')
    if (!isProblem) {
      await response.body?.cancel().catch(() => {})
      return new UnexpectedAnswer(
        `${url} answered ${response.status} without a reason. Is this the address of a controller?`,
      )
    }
    const body = await this.#bodyOf<unknown>(answer)
    return new ApiError(problemFields(body, response))
  }

  #signals(call: Pick<Call, 'signal'>): AbortSignal[] {
    return [this.#options.signal, call.signal].filter((signal) => signal !== null && signal !== undefined)
  }

  #signalOf(call: Call): AbortSignal {
    return AbortSignal.any(this.#signals(call))
  }
}

function encoded(body: unknown): string | Uint8Array<ArrayBuffer> {
  return body instanceof Uint8Array ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body)
}

/** Encodes a segment of a path: an id may contain any character. */
export function pathSegment(id: string): string {
  // One or two dots would be a relative path.
  if (id === '.' || id === '..') return id.replaceAll('.', '%252E')
  return encodeURIComponent(id)
}

/** Resolves after `ms`; rejects with the reason of the signal as soon as it aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => signal.throwIfAborted())
}

/** Doubles with every attempt, with jitter so that clients do not retry at the same time. */
export function backoffMs(attempt: number, maxMs = MAX_PAUSE_MS): number {
  return Math.min(maxMs, FIRST_PAUSE_MS * 2 ** Math.min(attempt - 1, 16)) * (0.5 + Math.random() / 2)
}

function mayTryAgain(error: unknown, call: Call): boolean {
  if (error instanceof ConnectionError) return error.isUnsent || isRepeatable(call)
  if (!(error instanceof ApiError)) return false
  // These two were not carried out.
  if (error.status === 429 || error.code === 'state_behind') return true
  return isRepeatable(call) && error.status === 503
}

function pauseMs(error: unknown, attempt: number): number {
  const asked = error instanceof ApiError ? error.retryAfterSeconds : null
  return asked === null ? backoffMs(attempt) : Math.min(MAX_PAUSE_MS, asked * 1000)
}

function queryText(query: Query = {}): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null) parameters.set(name, String(value))
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}

function problemFields(body: unknown, response: Response): ConstructorParameters<typeof ApiError>[0] {
  const problem = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {}
  const text = (name: string): string | null => (typeof problem[name] === 'string' ? problem[name] : null)
  const retryAfter = Number(response.headers.get('retry-after') ?? NaN)
  return {
    status: response.status,
    code: text('code') ?? 'unknown',
    detail: text('detail') ?? text('title') ?? `status ${response.status}`,
    errors: Array.isArray(problem['errors']) ? (problem['errors'] as ApiError['errors']) : [],
    requestId: text('request_id'),
    retryAfterSeconds: Number.isFinite(retryAfter) && retryAfter >= 0 ? retryAfter : null,
  }
}

/** Node wraps the cause: fetch failed ← AggregateError ← ECONNREFUSED. */
function codeOf(error: unknown): string | null {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    const inner = at instanceof AggregateError ? (at.errors as unknown[])[0] : at
    const code = (inner as { readonly code?: unknown }).code ?? (at as { readonly code?: unknown }).code
    if (typeof code === 'string') return code
  }
  return null
}

const ERROR_TEXTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused. Is the controller running?',
  ENOENT: 'the socket does not exist. Is the server running?',
  EACCES: 'permission denied. Are you in the group headroom?',
  ENOTFOUND: 'host name not found',
  EAI_AGAIN: 'the name server does not answer',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'network unreachable',
  ECONNRESET: 'the connection broke',
  EPIPE: 'the connection broke',
  UND_ERR_SOCKET: 'the connection broke',
  UND_ERR_CONNECT_TIMEOUT: 'connection timed out',
}

function errorText(code: string | null, error: unknown): string {
  if (code !== null) return ERROR_TEXTS[code] ?? code
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  return cause instanceof Error ? cause.message : String(cause)
}
