/** The API server over HTTPS: keeps connections, bounds what it reads, and ends a watch that is silent. */
import { Agent, request } from 'node:https'
import type { IncomingMessage } from 'node:http'
import type { FieldFault } from '../contract/field-fault.ts'
import {
  apiVersionOf,
  type DeleteOptions,
  type KubeApi,
  KubeError,
  type KubeList,
  type KubeObject,
  type KubePatch,
  type ListOptions,
  type ObjectKey,
  type ResourceKind,
  type WatchEvent,
  type WatchOptions,
  type WriteOptions,
} from '../ports/kube-api.ts'
import { linesOf, textOf } from './answer-bytes.ts'
import type { KubeConnection } from './kube-connection.ts'
import { warningsOf } from './warning-header.ts'

export interface KubeClientOptions {
  readonly userAgent: string
  readonly requestTimeoutMs?: number
  /** A watch that sends no byte for its own timeout and so long is taken for broken. */
  readonly watchGraceMs?: number
  readonly maxAnswerBytes?: number
}

const REQUEST_TIMEOUT_MS = 30_000
/** An API server need not send bookmarks: without events a watch is silent until the server ends it. */
const WATCH_GRACE_MS = 30_000
/** 500 objects of the largest size that etcd takes are more, but no list of pods is near. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024
const MAX_CONNECTIONS = 64

interface Call {
  readonly method: string
  readonly path: string
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: unknown
  readonly contentType?: string
  readonly silenceMs?: number
  readonly signal?: AbortSignal
}

const PATCH_TYPES = { merge: 'application/merge-patch+json', json: 'application/json-patch+json' }

export class KubeClient implements KubeApi {
  readonly #connection: KubeConnection
  readonly #options: KubeClientOptions
  readonly #agent: Agent

  constructor(connection: KubeConnection, options: KubeClientOptions) {
    this.#connection = connection
    this.#options = options
    const { ca, clientCertificate } = connection
    this.#agent = new Agent({
      keepAlive: true,
      maxSockets: MAX_CONNECTIONS,
      ...(ca === undefined ? {} : { ca }),
      ...clientCertificate,
    })
  }

  /** Ends all connections. */
  close(): void {
    this.#agent.destroy()
  }

  async get(kind: ResourceKind, key: ObjectKey): Promise<KubeObject> {
    return this.#object({ method: 'GET', path: pathOf(kind, key.namespace, key.name) })
  }

  async list(kind: ResourceKind, options: ListOptions = {}): Promise<KubeList> {
    const { namespace, labelSelector, limit, continueFrom } = options
    const answer = (await this.#json({
      method: 'GET',
      path: pathOf(kind, namespace),
      query: { labelSelector, limit: limit?.toString(), continue: continueFrom },
    })) as { items?: KubeObject[] | null; metadata?: { resourceVersion?: string; continue?: string } }
    // Items of a list have no kind of their own.
    const type = { apiVersion: apiVersionOf(kind), kind: kind.kind }
    return {
      items: (answer.items ?? []).map((item) => ({ ...type, ...item })),
      resourceVersion: answer.metadata?.resourceVersion ?? '',
      continueFrom: answer.metadata?.continue || null,
    }
  }

  async *watch(kind: ResourceKind, options: WatchOptions): AsyncGenerator<WatchEvent> {
    const { namespace, labelSelector, resourceVersion, timeoutMs, signal } = options
    const { watchGraceMs = WATCH_GRACE_MS, maxAnswerBytes = MAX_ANSWER_BYTES } = this.#options
    const silenceMs = timeoutMs + watchGraceMs
    const query = {
      ...{ watch: 'true', allowWatchBookmarks: 'true', labelSelector, resourceVersion },
      timeoutSeconds: String(Math.max(1, Math.round(timeoutMs / 1000))),
    }
    const call = { method: 'GET', path: pathOf(kind, namespace), query, silenceMs, signal }
    try {
      const answer = await this.#send(call)
      if (answer.statusCode !== 200) throw await this.#refusal(answer)
      for await (const line of linesOf(answer, maxAnswerBytes)) {
        const event = JSON.parse(line) as { type: string; object: unknown }
        if (event.type === 'ERROR') throw errorOf(event.object)
        yield event as WatchEvent
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  async create(kind: ResourceKind, object: KubeObject, options: WriteOptions = {}): Promise<KubeObject> {
    const { namespace, name } = object.metadata
    const isBinding = options.subresource === 'binding'
    const path = isBinding ? pathOf(kind, namespace, name, 'binding') : pathOf(kind, namespace)
    const type = isBinding
      ? { apiVersion: 'v1', kind: 'Binding' }
      : { apiVersion: apiVersionOf(kind), kind: kind.kind }
    return this.#object({ method: 'POST', path, body: { ...type, ...object }, ...written(options) }, options)
  }

  async replace(kind: ResourceKind, object: KubeObject, options: WriteOptions = {}): Promise<KubeObject> {
    const { namespace, name } = object.metadata
    const path = pathOf(kind, namespace, name, options.subresource)
    const body = { apiVersion: apiVersionOf(kind), kind: kind.kind, ...object }
    return this.#object({ method: 'PUT', path, body, ...written(options) }, options)
  }

  async patch(
    kind: ResourceKind,
    key: ObjectKey,
    { type, body }: KubePatch,
    options: WriteOptions = {},
  ): Promise<KubeObject> {
    const path = pathOf(kind, key.namespace, key.name, options.subresource)
    const contentType = PATCH_TYPES[type]
    return this.#object({ method: 'PATCH', path, body, contentType, ...written(options) }, options)
  }

  async delete(kind: ResourceKind, key: ObjectKey, preconditions: DeleteOptions = {}): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions }
    await this.#json({ method: 'DELETE', path: pathOf(kind, key.namespace, key.name), body })
  }

  async #object(call: Call, options: WriteOptions = {}): Promise<KubeObject> {
    return (await this.#json(call, options)) as KubeObject
  }

  async #json(call: Call, { onWarning }: WriteOptions = {}): Promise<unknown> {
    const answer = await this.#send(call)
    if (onWarning !== undefined) for (const text of warningsOf(answer.headers['warning'])) onWarning(text)
    if ((answer.statusCode ?? 0) >= 300) throw await this.#refusal(answer)
    return JSON.parse(await textOf(answer, this.#maxBytes))
  }

  async #refusal(answer: IncomingMessage): Promise<Error> {
    const text = await textOf(answer, this.#maxBytes)
    const code = answer.statusCode ?? 0
    const seconds = Number(answer.headers['retry-after'])
    const retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : null
    try {
      return errorOf(JSON.parse(text), retryAfterMs)
    } catch {
      // A proxy in between answers without a Status.
      return new KubeError(code, 'Unknown', text.slice(0, 200).trim() || `HTTP ${code}`, { retryAfterMs })
    }
  }

  get #maxBytes(): number {
    return this.#options.maxAnswerBytes ?? MAX_ANSWER_BYTES
  }

  #send({ method, path, query = {}, body, ...call }: Call): Promise<IncomingMessage> {
    const url = new URL(path, this.#connection.server)
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, value)
    const text = body === undefined ? null : JSON.stringify(body)
    const token = this.#connection.token()
    const headers = {
      accept: 'application/json',
      'user-agent': this.#options.userAgent,
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(text === null
        ? {}
        : {
            'content-type': call.contentType ?? 'application/json',
            'content-length': String(Buffer.byteLength(text)),
          }),
    }
    const timeout = call.silenceMs ?? this.#options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS
    return new Promise((resolve, reject) => {
      const { signal } = call
      let answer: IncomingMessage | null = null
      const sent = request(
        url,
        { method, headers, agent: this.#agent, timeout, ...(signal === undefined ? {} : { signal }) },
        (response) => {
          answer = response
          resolve(response)
        },
      )
      // Node tells of silence and leaves the end to the caller.
      sent.on('timeout', () =>
        (answer ?? sent).destroy(new Error(`the API server sent nothing for ${timeout / 1000} s`)),
      )
      sent.on('error', reject)
      sent.end(text ?? undefined)
    })
  }
}

function written({ isDryRun }: WriteOptions): { query: Call['query'] & object } {
  return { query: isDryRun === true ? { dryRun: 'All' } : {} }
}

export function pathOf(kind: ResourceKind, namespace?: string, name?: string, subresource?: string): string {
  const { group, version, plural, isNamespaced } = kind
  const parts = [
    ...(group === '' ? ['api', version] : ['apis', group, version]),
    ...(isNamespaced && namespace !== undefined ? ['namespaces', namespace] : []),
    plural,
    ...(name === undefined ? [] : [name]),
    ...(subresource === undefined ? [] : [subresource]),
  ]
  return `/${parts.map(encodeURIComponent).join('/')}`
}

interface Status {
  readonly code?: number
  readonly reason?: string
  readonly message?: string
  readonly details?: {
    readonly causes?: readonly { readonly field?: string; readonly message?: string }[]
    readonly retryAfterSeconds?: number
  }
}

function errorOf(value: unknown, retryAfterMs: number | null = null): KubeError {
  const { code = 0, reason = 'Unknown', message = '', details = {} } = value as Status
  const faults = (details.causes ?? []).flatMap(({ field, message: text }): FieldFault[] =>
    field === undefined ? [] : [{ path: field, message: text ?? '' }],
  )
  const seconds = details.retryAfterSeconds
  return new KubeError(code, reason, message, {
    faults,
    retryAfterMs: seconds === undefined ? retryAfterMs : seconds * 1000,
  })
}
