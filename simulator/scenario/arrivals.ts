/** Where a run's submissions come from, one after the other. */
import type { SimTask } from './scenario.ts'

/**
 * Tasks in the order of arrival, pulled one by one, so that a million of them are never there at once. Nothing is awaited for a task; only a source that
 * reads from disk has to be filled now and then:
 *
 *     if (source.needsFill) await source.fill()
 *     const task = source.next()
 */
export interface ArrivalSource {
  /** More has to be read before `next` may be called. False at the end. */
  readonly needsFill: boolean
  /** Reads on. Harmless when nothing is needed. Throws what reading throws (TraceError). */
  fill(): Promise<void>
  /** The next task, `at` never falling; null when there is none left. Throws while `needsFill`. */
  next(): SimTask | null
  /** Lets go of files. Only needed when not everything was taken. */
  close(): Promise<void>
}

/** A source that has no disk behind it. */
export function makeSource(next: () => SimTask | null): ArrivalSource {
  return { needsFill: false, fill: async () => {}, next, close: async () => {} }
}

/** Every task of a source, filled where needed. For tests and tools; a run pulls by itself. */
export async function* drainArrivals(source: ArrivalSource): AsyncGenerator<SimTask> {
  for (;;) {
    if (source.needsFill) await source.fill()
    const task = source.next()
    if (task === null) return
    yield task
  }
}
