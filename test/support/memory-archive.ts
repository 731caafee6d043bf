/** A series archive in memory that survives a controller, with the content of the files. */
import type { SeriesArchive } from '../../controller/ports/series-archive.ts'

interface Segment {
  readonly at: number
  readonly records: Uint8Array[]
}

export class MemoryArchive implements SeriesArchive {
  readonly logs = new Map<string, Segment[]>()

  async *read(log: string): AsyncGenerator<readonly Uint8Array[]> {
    for (const { records } of this.logs.get(log) ?? []) yield records
  }

  append(log: string, records: readonly Uint8Array[], opensAt: number | null): boolean {
    const segments = this.logs.get(log) ?? []
    this.logs.set(log, segments)
    if (opensAt !== null) segments.push({ at: opensAt, records: [] })
    segments.at(-1)?.records.push(...records)
    return segments.length > 0
  }

  trim(log: string, before: number): void {
    const segments = this.logs.get(log) ?? []
    while (segments[1] !== undefined && segments[1].at <= before) segments.shift()
  }

  async close(): Promise<void> {}
}
