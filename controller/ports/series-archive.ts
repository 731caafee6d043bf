import type { Instant } from '../../protocol/units.ts'

/**
 * Where series outlive the process: logs of records, in segments. Whatever goes wrong here costs history and
 * nothing else: nothing is thrown, and nobody waits for a write.
 */
export interface SeriesArchive {
  /**
   * The records of a log, oldest first, a segment at a time. Of a damaged segment, what stands before the
   * damage.
   */
  read(log: string): AsyncIterable<readonly Uint8Array[]>
  /**
   * Adds records at the end of the log.
   * @returns false when they are lost because what stands before them could not be written: the next ones
   *   must begin a new segment
   * @param opensAt they begin a new segment, and the first of its rows is about this instant; null: they go
   *   on with the last one
   */
  append(log: string, records: readonly Uint8Array[], opensAt: Instant | null): boolean
  /** Segments go that are about nothing but times before this. */
  trim(log: string, before: Instant): void
  /** Resolves when what was added is written, or has failed. */
  close(): Promise<void>
}
