/**
 * Requests to the controller: JSON in and out, errors with their fields, and the ETag that prevents lost
 * updates.
 */
import type { Problem } from '../../controller/api/http/problem-schema.ts'
import { storedToken } from './token.ts'
import { takeEarlyResponse } from './early-responses.ts'
import { queryText, type Query } from './query-text.ts'

/** Limit for a complete response. */
const RESPONSE_TIMEOUT_MS = 20_000

export interface ApiResponse<T> {
  readonly body: T
  /** Send it as `ifMatch` with the change. */
  readonly etag: string | null
}

export interface RequestOptions {
  readonly query?: Query
  readonly body?: unknown
  readonly ifMatch?: string | null
  readonly contentType?: string
  readonly signal?: AbortSignal
}

/** The controller rejected the request (RFC 9457). */
export class Refused extends Error {
  override readonly name = 'Refused'
  readonly status: number
  readonly code: string
  /** Errors of single fields, by JSON Pointer. */
  readonly errors: Problem['errors']

  constructor(status: number, problem: Partial<Problem>) {
    super(problem.detail ?? problem.title ?? `The controller returned HTTP status ${status}.`)
    this.status = status
    this.code = problem.code ?? 'unknown'
    this.errors = problem.errors ?? []
  }

  /** Returns the error of one field, or null. */
  detailOf(pointer: string): string | null {
    return this.errors.find((error) => error.pointer === pointer)?.detail ?? null
  }
}

/** Returns true if a retry gives the same error: not found, or not permitted. */
export function isFinal(error: Error | null): boolean {
  return error instanceof Refused && error.status < 500 && error.status !== 429
}

/** No response arrived. */
class Unreachable extends Error {
  override readonly name = 'Unreachable'
}

export class ApiClient {
  readonly base: string
  /** The newest event of any response: no later response is of an older state. */
  #eventSeq = 0

  constructor(base: string) {
    this.base = base
  }

  async get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
    return (await this.send<T>('GET', path, signal === undefined ? { query } : { query, signal })).body
  }

  /** @throws Refused, Unreachable */
  async send<T>(
    method: string,
    path: string,
    { query = {}, body, ifMatch = null, contentType, signal }: RequestOptions = {},
  ): Promise<ApiResponse<T>> {
    const token = storedToken()
    const headers: Record<string, string> = { accept: 'application/json' }
    if (token !== null) headers['authorization'] = `Bearer ${token}`
    if (body !== undefined) headers['content-type'] = contentType ?? 'application/json'
    if (ifMatch !== null) headers['if-match'] = ifMatch
    if (this.#eventSeq > 0) headers['headroom-min-event-seq'] = String(this.#eventSeq)
    const limit = AbortSignal.timeout(RESPONSE_TIMEOUT_MS)
    let response: Response
    let text: string
    try {
      const url = `${this.base}${path}${queryText(query)}`
      const request = (): Promise<Response> =>
        fetch(url, {
          method,
          headers,
          signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
          ...(body === undefined
            ? {}
            : { body: typeof body === 'string' || body instanceof Blob ? body : JSON.stringify(body) }),
        })
      response = await ((method === 'GET' ? takeEarlyResponse(url)?.catch(request) : undefined) ?? request())
      text = await response.text()
    } catch (error) {
      if (signal?.aborted === true) throw error
      throw new Unreachable('The controller does not respond.', { cause: error })
    }
    const parsed = text === '' ? null : parseBody(text, response.headers.get('content-type'))
    const seq = Number(response.headers.get('headroom-event-seq'))
    if (Number.isSafeInteger(seq)) this.#eventSeq = Math.max(this.#eventSeq, seq)
    if (!response.ok) {
      const refused = new Refused(response.status, (parsed ?? {}) as Partial<Problem>)
      // The store went back (a restore): what is requested next is answered from there.
      if (refused.code === 'state_behind') this.#eventSeq = 0
      throw refused
    }
    return { body: parsed as T, etag: response.headers.get('etag') }
  }
}

/** Encodes an id as a path segment. */
export function pathSegment(id: string): string {
  return id === '.' || id === '..' ? id.replaceAll('.', '%252E') : encodeURIComponent(id)
}

function parseBody(text: string, type: string | null): unknown {
  return type?.includes('json') === true ? JSON.parse(text) : text
}
