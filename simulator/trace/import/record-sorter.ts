/** Sorts more records than fit in memory: sorted runs are written to a spill file and merged when read. */
import type { SpillFile } from './spill-file.ts'

export interface SortRecord {
  /** First sort key, */
  readonly key: number
  /** second sort key, unique among records with the same first key. */
  readonly tie: number
  /** Payload, without line feeds. */
  readonly text: string
}

/** Characters of one run: the records in memory during input. */
const RUN_CHARACTERS = 16_777_216
/**
 * Bytes read from all runs together during the merge, so that memory is bounded as long as each run gets more
 * than the minimum.
 */
export const MERGE_BYTES = 16_777_216
/** Bytes read from one run at a time. */
const MAX_CHUNK_BYTES = 65_536
const MIN_CHUNK_BYTES = 4_096
const BLOCK_CHARACTERS = 1_048_576
const BATCH_RECORDS = 4096

interface Run {
  readonly offset: number
  readonly bytes: number
}

export class RecordSorter {
  readonly #openSpill: () => Promise<SpillFile>
  readonly #runCharacters: number
  readonly #runs: Run[] = []
  #spill: SpillFile | null = null
  #records: SortRecord[] = []
  #characters = 0
  #isSorted = true

  /** @param openSpill called once, when the records do not fit in memory */
  constructor(openSpill: () => Promise<SpillFile>, runCharacters = RUN_CHARACTERS) {
    this.#openSpill = openSpill
    this.#runCharacters = runCharacters
  }

  /** Returns undefined, or a promise to wait for before the next record. */
  add(record: SortRecord): Promise<void> | undefined {
    this.#records.push(record)
    this.#isSorted = false
    this.#characters += record.text.length
    return this.#characters < this.#runCharacters ? undefined : this.#writeRun()
  }

  /** All records in order, in batches. May be read repeatedly; no records are added after the first time. */
  async *sorted(): AsyncGenerator<readonly SortRecord[]> {
    if (this.#runs.length > 0 && this.#records.length > 0) await this.#writeRun()
    if (this.#spill !== null) {
      yield* merged(this.#spill, this.#runs)
      return
    }
    this.#putInOrder()
    if (this.#records.length > 0) yield this.#records
  }

  async close(): Promise<void> {
    this.#records = []
    await this.#spill?.close()
    this.#spill = null
  }

  #putInOrder(): void {
    if (this.#isSorted) return
    this.#records.sort(byKey)
    this.#isSorted = true
  }

  async #writeRun(): Promise<void> {
    this.#spill ??= await this.#openSpill()
    this.#putInOrder()
    const blocks: Run[] = []
    let block = ''
    for (const [i, { key, tie, text }] of this.#records.entries()) {
      block += `${key}\t${tie}\t${text}\n`
      if (block.length < BLOCK_CHARACTERS && i < this.#records.length - 1) continue
      blocks.push(await this.#spill.append(block))
      block = ''
    }
    this.#runs.push({ offset: blocks[0]!.offset, bytes: blocks.reduce((sum, { bytes }) => sum + bytes, 0) })
    this.#records = []
    this.#characters = 0
  }
}

/**
 * 1. Key.
 * 2. Tie, so that the order is total.
 */
function byKey(a: SortRecord, b: SortRecord): number {
  return a.key - b.key || a.tie - b.tie
}

async function* merged(spill: SpillFile, runs: readonly Run[]): AsyncGenerator<readonly SortRecord[]> {
  const heap: RunCursor[] = []
  const chunkBytes = Math.max(
    MIN_CHUNK_BYTES,
    Math.min(MAX_CHUNK_BYTES, Math.floor(MERGE_BYTES / runs.length)),
  )
  for (const run of runs) {
    const cursor = new RunCursor(spill, run, chunkBytes)
    await cursor.load()
    heap.push(cursor)
  }
  for (let i = (heap.length >> 1) - 1; i >= 0; i--) siftDown(heap, i)
  let batch: SortRecord[] = []
  while (heap.length > 0) {
    const least = heap[0]!
    batch.push(least.head!)
    if (!least.step()) await least.load()
    if (least.head === undefined) {
      const last = heap.pop()!
      if (heap.length > 0) heap[0] = last
    }
    siftDown(heap, 0)
    if (batch.length < BATCH_RECORDS) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

function siftDown(heap: RunCursor[], from: number): void {
  let at = from
  for (;;) {
    let least = at
    for (const child of [2 * at + 1, 2 * at + 2]) {
      if (child < heap.length && byKey(heap[child]!.head!, heap[least]!.head!) < 0) least = child
    }
    if (least === at) return
    ;[heap[at], heap[least]] = [heap[least]!, heap[at]!]
    at = least
  }
}

const NEWLINE = 0x0a

/** Reads one run from its start to its end. */
class RunCursor {
  /** Undefined at the end of the run. */
  head: SortRecord | undefined
  readonly #spill: SpillFile
  #offset: number
  readonly #end: number
  readonly #chunkBytes: number
  #lines: readonly string[] = []
  #next = 0

  constructor(spill: SpillFile, { offset, bytes }: Run, chunkBytes: number) {
    this.#spill = spill
    this.#chunkBytes = chunkBytes
    this.#offset = offset
    this.#end = offset + bytes
  }

  /** Moves to the next record; returns false if `load` must be called first. */
  step(): boolean {
    const line = this.#lines[this.#next++]
    if (line === undefined) return false
    this.head = recordOf(line)
    return true
  }

  async load(): Promise<void> {
    this.head = undefined
    if (this.#offset === this.#end) return
    let bytes = Math.min(this.#chunkBytes, this.#end - this.#offset)
    let chunk = await this.#spill.read(this.#offset, bytes)
    // A record that is longer than a chunk.
    while (chunk.lastIndexOf(NEWLINE) === -1) {
      bytes = Math.min(2 * bytes, this.#end - this.#offset)
      chunk = await this.#spill.read(this.#offset, bytes)
    }
    const end = chunk.lastIndexOf(NEWLINE)
    this.#offset += end + 1
    this.#lines = chunk.toString('utf8', 0, end).split('\n')
    this.#next = 0
    this.step()
  }
}

function recordOf(line: string): SortRecord {
  const first = line.indexOf('\t')
  const second = line.indexOf('\t', first + 1)
  return {
    key: Number(line.slice(0, first)),
    tie: Number(line.slice(first + 1, second)),
    text: line.slice(second + 1),
  }
}
