/**
 * A copy of the objects of one kind, kept by list and watch.
 * 1. Lists all pages, and compares them with the copy: whatever a broken watch has missed is told now.
 * 2. Watches from the version of the list. A watch that the server ends continues from the last version; one
 *    that fails does so after a pause.
 * 3. Lists again when the version is too old.
 */
import { type Clock, timePasses } from '../../controller/ports/clock.ts'
import type { RandomStream } from '../../controller/ports/random.ts'
import type { Instant } from '../../protocol/units.ts'
import {
  GONE,
  type KubeApi,
  KubeError,
  type KubeObject,
  type ResourceKind,
  type WatchEvent,
} from '../ports/kube-api.ts'

export type Change =
  | { readonly type: 'added' | 'deleted'; readonly object: KubeObject }
  | { readonly type: 'modified'; readonly object: KubeObject; readonly before: KubeObject }

export interface ReflectorOptions {
  readonly api: KubeApi
  readonly kind: ResourceKind
  readonly namespace?: string
  readonly labelSelector?: string
  readonly clock: Clock
  /** Spreads the ends of watches and the pauses. */
  readonly random: RandomStream
  /** Called in the order of versions. Must not throw. */
  readonly onChange: (change: Change) => void
  /** Once, after the changes of the first list. */
  readonly onSynced?: () => void
  /** Each failed request; the reflector continues. */
  readonly onFault?: (error: unknown) => void
  readonly pageSize?: number
}

export interface ReflectorFigures {
  readonly lists: number
  /** Changes that a later list had to tell, because a watch had missed them. */
  readonly repairs: number
  /** Last contact with the API server. */
  readonly heardAt: Instant
}

const PAGE_SIZE = 500
/** The server ends watches after this time, not all at once: a dead connection is found soon after. */
const WATCH_MS = 60_000
const WATCH_SPREAD_MS = 30_000
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 30_000

export class Reflector {
  readonly #options: ReflectorOptions
  readonly #objects = new Map<string, KubeObject>()
  readonly #stop = new AbortController()
  #ended: Promise<void> | null = null
  #isSynced = false
  #failures = 0
  #lists = 0
  #repairs = 0
  #heardAt: Instant

  constructor(options: ReflectorOptions) {
    this.#options = options
    this.#heardAt = options.clock.now()
  }

  /** By namespace and name: `ml/train-1`; by name where there is no namespace. */
  get objects(): ReadonlyMap<string, KubeObject> {
    return this.#objects
  }

  get isSynced(): boolean {
    return this.#isSynced
  }

  get figures(): ReflectorFigures {
    return { lists: this.#lists, repairs: this.#repairs, heardAt: this.#heardAt }
  }

  start(): void {
    this.#ended ??= this.#run()
  }

  /** Resolves when no further change will be told. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#ended
  }

  async #run(): Promise<void> {
    let version: string | null = null
    while (!this.#stop.signal.aborted) {
      try {
        version ??= await this.#list()
        version = await this.#watch(version)
        this.#failures = 0
      } catch (error) {
        if (this.#stop.signal.aborted) return
        this.#options.onFault?.(error)
        // The copy stays; the next list is compared with it.
        if (isTooOld(error)) version = null
        version = error instanceof WatchFailure ? error.version : version
        await this.#pause(error)
      }
    }
  }

  /** Returns the version of the list. */
  async #list(): Promise<string> {
    const { api, kind, pageSize = PAGE_SIZE } = this.#options
    const found = new Map<string, KubeObject>()
    let continueFrom: string | null = null
    let version: string
    do {
      const page = await api.list(kind, {
        ...this.#selection(),
        limit: pageSize,
        ...(continueFrom === null ? {} : { continueFrom }),
      })
      if (this.#stop.signal.aborted) return page.resourceVersion
      for (const object of page.items) found.set(keyOf(object), kept(object))
      version = page.resourceVersion
      continueFrom = page.continueFrom
    } while (continueFrom !== null)
    this.#heard()
    this.#lists += 1
    this.#adopt(found)
    return version
  }

  #adopt(found: ReadonlyMap<string, KubeObject>): void {
    let changes = 0
    for (const [key, object] of found) if (this.#take(key, object)) changes += 1
    for (const [key, object] of [...this.#objects])
      if (!found.has(key)) {
        this.#drop(key, object)
        changes += 1
      }
    if (this.#isSynced) {
      this.#repairs += changes
      return
    }
    this.#isSynced = true
    this.#options.onSynced?.()
  }

  /** Returns the version at the end of the watch. Throws WatchFailure, or KubeError 410. */
  async #watch(from: string): Promise<string> {
    const { api, kind, random } = this.#options
    let version = from
    try {
      const events = api.watch(kind, {
        ...this.#selection(),
        resourceVersion: from,
        timeoutMs: WATCH_MS + Math.floor(random() * WATCH_SPREAD_MS),
        signal: this.#stop.signal,
      })
      for await (const event of events) {
        if (this.#stop.signal.aborted) break
        this.#heard()
        this.#follow({ ...event, object: kept(event.object) })
        version = event.object.metadata.resourceVersion ?? version
        this.#failures = 0
      }
    } catch (error) {
      throw isTooOld(error) ? error : new WatchFailure(version, error)
    }
    return version
  }

  #follow({ type, object }: WatchEvent): void {
    const key = keyOf(object)
    if (type === 'ADDED' || type === 'MODIFIED') this.#take(key, object)
    else if (type === 'DELETED' && this.#objects.has(key)) this.#drop(key, object)
  }

  /** Returns true if it is a change. */
  #take(key: string, object: KubeObject): boolean {
    const before = this.#objects.get(key)
    if (before?.metadata.resourceVersion === object.metadata.resourceVersion && before !== undefined)
      return false
    // An object of the same name that was deleted and created meanwhile is another one.
    if (before !== undefined && before.metadata.uid !== object.metadata.uid) this.#drop(key, before)
    this.#objects.set(key, object)
    this.#options.onChange(
      before === undefined || before.metadata.uid !== object.metadata.uid
        ? { type: 'added', object }
        : { type: 'modified', object, before },
    )
    return true
  }

  #drop(key: string, object: KubeObject): void {
    this.#objects.delete(key)
    this.#options.onChange({ type: 'deleted', object })
  }

  #selection() {
    const { namespace, labelSelector } = this.#options
    return {
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
    }
  }

  #heard(): void {
    this.#heardAt = this.#options.clock.now()
  }

  /** Doubles with each failure in a row, up to a maximum; the server may ask for more. */
  #pause(error: unknown): Promise<void> {
    const doubled = FIRST_PAUSE_MS * Math.min(LONGEST_PAUSE_MS / FIRST_PAUSE_MS, doublings(this.#failures))
    this.#failures += 1
    const spread = Math.floor(doubled * (0.5 + this.#options.random() / 2))
    const cause = error instanceof WatchFailure ? error.cause : error
    const asked = cause instanceof KubeError ? (cause.retryAfterMs ?? 0) : 0
    const ms = Math.max(spread, Math.min(asked, LONGEST_PAUSE_MS))
    return timePasses(this.#options.clock, ms, this.#stop.signal)
  }
}

/** A watch that broke after this version. */
class WatchFailure extends Error {
  override readonly name = 'WatchFailure'
  readonly version: string

  constructor(version: string, cause: unknown) {
    super('the watch failed', { cause })
    this.version = version
  }
}

function isTooOld(error: unknown): boolean {
  return error instanceof KubeError && error.code === GONE
}

/** Who has set which field is the larger part of many objects, and is never read. */
function kept(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata as Record<string, unknown>
  return { ...object, metadata }
}

function keyOf({ metadata: { namespace, name = '' } }: KubeObject): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}

function doublings(times: number): number {
  let result = 1
  for (let i = 0; i < Math.min(times, 30); i++) result *= 2
  return result
}
