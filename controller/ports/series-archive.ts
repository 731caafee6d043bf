import type { Instant } from '../../protocol/units.ts'

/**
 * Stores series beyond the process: logs of records, in segments. A failure costs only history: nothing is
 * thrown, and no caller waits for a write.
 */
export interface SeriesArchive {
  /**
   * The records of a log, oldest first, one segment at a time. For a damaged segment, the records before the
   * damage.
   */
  read(log: string): AsyncIterable<readonly Uint8Array[]>
  /**
   * Appends records to the log.
   * @returns false if they are lost because earlier records could not be written: the next ones must begin a
   * new segment
   * @param opensAt begins a new segment whose first row is about this instant; null: continues the last
   * segment
   */
  append(log: string, records: readonly Uint8Array[], opensAt: Instant | null): boolean
  /** Removes segments that cover only times before this. */
  trim(log: string, before: Instant): void
  /** Resolves when all appended records are written or have failed. */
  close(): Promise<void>
}
