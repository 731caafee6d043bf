/**
 * The API server as one process reaches it in virtual time: requests and answers take time, and some are lost
 * or fail, before or after they took effect.
 */
import { type Clock, RANK_MESSAGE } from '../../../../controller/ports/clock.ts'
import type { RandomStream } from '../../../../controller/ports/random.ts'
import {
  CONFLICT,
  GONE,
  type KubeApi,
  KubeError,
  type WatchEvent,
  type KubeObject,
  type ResourceKind,
  type WatchOptions,
  type WriteOptions,
} from '../../../../operator/ports/kube-api.ts'
import type { DurationMs } from '../../../../protocol/units.ts'
import type { VirtualProcess } from './virtual-process.ts'

/** What happens to one request. */
interface Fate {
  /** Null: it never reaches the API server. */
  readonly arrivesMs: DurationMs | null
  readonly answerMs: DurationMs
  /** Null: the client gets the answer of the API server. */
  readonly error: Error | null
}

export interface ProcessApiParts {
  readonly api: KubeApi
  readonly clock: Clock
  readonly process: VirtualProcess
  readonly random: RandomStream
  /** Called when the process sends a whole object. */
  readonly onSend: (kind: ResourceKind, object: KubeObject, options?: WriteOptions) => void
}

const TIMEOUT_MS = 10_000
const SLOW_SHARE = 0.05

export class ProcessApi implements KubeApi {
  /** Share of requests that fail. */
  trouble = 0
  /** How long changes take to a copy. */
  watchLagMs: DurationMs = 5
  /** Requests that have failed by trouble. */
  faults = 0
  readonly #api: KubeApi
  readonly #clock: Clock
  readonly #process: VirtualProcess
  readonly #random: RandomStream
  readonly #onSend: ProcessApiParts['onSend']
  readonly #watches = new Set<AbortController>()

  constructor({ api, clock, process, random, onSend }: ProcessApiParts) {
    this.#api = api
    this.#clock = clock
    this.#process = process
    this.#random = random
    this.#onSend = onSend
  }

  get: KubeApi['get'] = (...asked) => this.#call(() => this.#api.get(...asked))
  list: KubeApi['list'] = (...asked) => this.#call(() => this.#api.list(...asked))
  create: KubeApi['create'] = (...asked) => this.#send(asked, () => this.#api.create(...asked))
  replace: KubeApi['replace'] = (...asked) => this.#send(asked, () => this.#api.replace(...asked))
  patch: KubeApi['patch'] = (...asked) => this.#call(() => this.#api.patch(...asked))
  delete: KubeApi['delete'] = (...asked) => this.#call(() => this.#api.delete(...asked))

  async *watch(kind: ResourceKind, options: WatchOptions): AsyncGenerator<WatchEvent> {
    const own = new AbortController()
    const end = (): void => own.abort()
    options.signal.addEventListener('abort', end)
    const cancel = this.#clock.at(this.#clock.now() + options.timeoutMs, end)
    this.#watches.add(own)
    try {
      for await (const event of this.#api.watch(kind, { ...options, signal: own.signal })) {
        await this.#delay(1 + Math.floor(this.#random() * this.watchLagMs))
        if (own.signal.aborted) break
        yield event
      }
      await this.#delay(1)
      if (own.signal.reason === BROKEN) throw BROKEN
    } finally {
      cancel()
      options.signal.removeEventListener('abort', end)
      this.#watches.delete(own)
    }
  }

  /** All watches end with 410. */
  breakWatches(): void {
    for (const watch of [...this.#watches]) watch.abort(BROKEN)
  }

  #send<T>(asked: Parameters<KubeApi['create']>, act: () => Promise<T>): Promise<T> {
    this.#onSend(...asked)
    return this.#call(act)
  }

  #call<T>(act: () => Promise<T>): Promise<T> {
    const { arrivesMs, answerMs, error } = this.#fate()
    if (error !== null) this.faults += 1
    return new Promise((resolve, reject) => {
      const after = (ms: DurationMs, then: () => void): void =>
        void this.#clock.at(this.#clock.now() + ms, then, RANK_MESSAGE)
      const answered = (give: () => void): void => after(answerMs, () => this.#process.run(give))
      if (error !== null) answered(() => reject(error))
      if (arrivesMs === null) return
      after(arrivesMs, () => {
        const done = act()
        if (error !== null) done.catch(() => {})
        else
          done.then(
            (value) => answered(() => resolve(value)),
            (refused: Error) => answered(() => reject(refused)),
          )
      })
    })
  }

  #fate(): Fate {
    const below = (n: number): number => Math.floor(this.#random() * n)
    const usual = { arrivesMs: 1 + below(8), answerMs: 1 + below(8), error: null }
    if (this.trouble === 0) return usual
    if (this.#random() >= this.trouble)
      return this.#random() < SLOW_SHARE ? { ...usual, answerMs: below(4_000) } : usual
    const answerMs = 10 + below(50)
    const away = new Error('the API server did not answer in time')
    switch (below(6)) {
      case 0:
        return { arrivesMs: null, answerMs, error: new KubeError(CONFLICT, 'Conflict', 'drawn conflict') }
      case 1:
        return { arrivesMs: null, answerMs, error: new KubeError(500, 'InternalError', 'drawn fault') }
      case 2:
        return { arrivesMs: null, answerMs, error: new KubeError(429, 'TooManyRequests', 'drawn', WAIT) }
      case 3:
        return { arrivesMs: 5, answerMs, error: new KubeError(500, 'InternalError', 'drawn fault, stored') }
      case 4:
        return { arrivesMs: below(TIMEOUT_MS), answerMs: TIMEOUT_MS, error: away }
      default:
        return { arrivesMs: TIMEOUT_MS + below(2 * TIMEOUT_MS), answerMs: TIMEOUT_MS, error: away }
    }
  }

  #delay(ms: DurationMs): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.at(this.#clock.now() + ms, () => this.#process.run(resolve), RANK_MESSAGE)
    })
  }
}

const WAIT = { retryAfterMs: 1_000 }
const BROKEN = new KubeError(GONE, 'Expired', 'drawn end of a watch')
