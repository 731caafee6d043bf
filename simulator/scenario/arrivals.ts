/** The interface of a run's source of submissions. */
import type { SimTask } from './scenario.ts'

/**
 * Tasks in order of arrival, pulled one at a time so that a million tasks are never in memory together.
 * `next` is synchronous; only a source that reads from disk needs `fill`:
 * if (source.needsFill) await source.fill()
 * const task = source.next()
 */
export interface ArrivalSource {
  /** True if `fill` must run before `next`. False at the end. */
  readonly needsFill: boolean
  /** Reads more tasks. Does nothing when none are needed. Throws TraceError if reading fails. */
  fill(): Promise<void>
  /** Returns the next task, or null at the end. `at` never decreases. Throws while `needsFill` is true. */
  next(): SimTask | null
  /** Closes open files. Needed only if the source was not read to the end. */
  close(): Promise<void>
}

/** Returns a source that does not read from disk. */
export function makeSource(next: () => SimTask | null): ArrivalSource {
  return { needsFill: false, fill: async () => {}, next, close: async () => {} }
}

/** Yields every task of a source and fills it when needed. For tests and tools. */
export async function* drainArrivals(source: ArrivalSource): AsyncGenerator<SimTask> {
  for (;;) {
    if (source.needsFill) await source.fill()
    const task = source.next()
    if (task === null) return
    yield task
  }
}
