/** The history of an API server in memory, and who follows it. */
import { GONE, type KubeObject, KubeError, type WatchEvent, type WatchOptions } from '../ports/kube-api.ts'

export interface RecordedEvent extends WatchEvent {
  readonly version: number
  /** The object before the change, which a selector may have matched. */
  readonly before: KubeObject | null
}

type Matches = (object: KubeObject) => boolean

interface Watcher {
  take(event: RecordedEvent): void
  end(): void
}

/** Events of one kind, oldest first. */
export class EventHistory {
  readonly #maxEvents: number
  #events: RecordedEvent[] = []
  /** The latest version that is not in the history any more. */
  #compactedTo = 0
  readonly #watchers = new Set<Watcher>()

  constructor(maxEvents: number) {
    this.#maxEvents = maxEvents
  }

  get watcherCount(): number {
    return this.#watchers.size
  }

  record(event: RecordedEvent): void {
    this.#events.push(event)
    if (this.#events.length > this.#maxEvents) this.compact(this.#events[0]!.version)
    for (const watcher of [...this.#watchers]) watcher.take(event)
  }

  /** Forgets all events up to this version: a watch from an older one gets 410. */
  compact(version: number): void {
    this.#compactedTo = Math.max(this.#compactedTo, version)
    this.#events = this.#events.filter((event) => event.version > version)
  }

  /** Ends all watches, as a restart of the API server or a proxy does. */
  dropWatches(): void {
    for (const watcher of [...this.#watchers]) watcher.end()
  }

  /** Tells all watches the current version. */
  bookmark(version: number, object: KubeObject): void {
    for (const watcher of [...this.#watchers])
      watcher.take({ type: 'BOOKMARK', version, object, before: null })
  }

  async *watch({ resourceVersion, signal }: WatchOptions, matches: Matches): AsyncGenerator<WatchEvent> {
    const since = Number(resourceVersion)
    if (since < this.#compactedTo)
      throw new KubeError(GONE, 'Expired', `too old resource version: ${since} (${this.#compactedTo})`)
    const waiting = this.#events.filter(({ version }) => version > since)
    let wake = (): void => {}
    let isEnded = false
    const watcher: Watcher = {
      take: (event) => {
        waiting.push(event)
        wake()
      },
      end: () => {
        isEnded = true
        wake()
      },
    }
    const onAbort = (): void => watcher.end()
    signal.addEventListener('abort', onAbort)
    this.#watchers.add(watcher)
    try {
      while (!signal.aborted) {
        const event = waiting.shift()
        if (event !== undefined) {
          const seen = asSeen(event, matches)
          if (seen !== null) yield seen
        } else if (isEnded) return
        else await new Promise<void>((resolve) => (wake = resolve))
      }
    } finally {
      this.#watchers.delete(watcher)
      signal.removeEventListener('abort', onAbort)
    }
  }
}

/** An object that begins or ceases to match a selector is added or deleted for this watch. */
function asSeen({ type, object, before }: RecordedEvent, matches: Matches): WatchEvent | null {
  if (type === 'BOOKMARK') return { type, object }
  const matched = before !== null && matches(before)
  const isMatch = type !== 'DELETED' && matches(object)
  if (isMatch) return { type: matched ? 'MODIFIED' : 'ADDED', object }
  return matched ? { type: 'DELETED', object } : null
}
