/**
 * The journal: one line of JSON for every event, in order. Its digest is the SHA-256 of the text, so that
 * `sha256sum journal.jsonl` gives the same; after every CHAIN_EVERY lines, a line contains the digest of all
 * before it, so that a difference is found quickly.
 */
import { createHash } from 'node:crypto'
import type { Event } from '../../controller/model/event.ts'
import type { Instant } from '../../protocol/units.ts'
import { AsciiJson } from './ascii-json.ts'

const CHAIN_EVERY = 4096
const BLOCK_BYTES = 65_536
/** A longer line is hashed separately. */
const LINE_ROOM = 8_192

export interface JournalSink {
  write(text: string): void
}

export class Journal {
  readonly #hash = createHash('sha256')
  readonly #block = Buffer.allocUnsafe(BLOCK_BYTES)
  readonly #plain = new AsciiJson(this.#block)
  readonly #sink: JournalSink | null
  #used = 0
  #lines = 0

  /** @param sink also receives the text; null: only the digest is needed */
  constructor(sink: JournalSink | null) {
    this.#sink = sink
  }

  record(events: readonly Event[]): void {
    for (const event of events) {
      if (!this.#writePlain(event)) this.#write(lineOf(event))
      this.#countLine()
    }
  }

  /** Writes a line that is not an event: the start or end of a fault. */
  note(value: { readonly at: Instant }): void {
    this.#write(`${JSON.stringify(value)}\n`)
    this.#countLine()
  }

  /** The digest of everything recorded so far, in hex. */
  digest(): string {
    this.#flush()
    return this.#hash.copy().digest('hex')
  }

  #countLine(): void {
    this.#lines += 1
    if (this.#lines % CHAIN_EVERY === 0) this.#chain()
  }

  #chain(): void {
    this.#write(`{"chain":"${this.digest()}"}\n`)
  }

  /**
   * Writes the same line as `lineOf` without an intermediate string; returns false if the event is not plain.
   */
  #writePlain(event: Event): boolean {
    if (this.#used + LINE_ROOM > BLOCK_BYTES) this.#flush()
    const line = this.#plain
    line.begin(this.#used, this.#used + LINE_ROOM)
    line.raw('{"seq":')
    line.whole(event.seq)
    line.raw(',"at":')
    line.whole(event.at)
    line.raw(',"kind":')
    line.text(event.kind)
    line.raw(',"task":')
    line.textOrNull(event.taskId)
    line.raw(',"node":')
    line.textOrNull(event.nodeId)
    line.raw(',"cause":')
    if (event.causedBy === null) line.raw('null')
    else line.whole(event.causedBy)
    line.raw(',"data":')
    line.record(event.data)
    line.raw('}\n')
    if (!line.isPlain) return false
    this.#sink?.write(this.#block.toString('latin1', this.#used, line.at))
    this.#used = line.at
    return true
  }

  #write(line: string): void {
    this.#sink?.write(line)
    if (line.length * 3 > LINE_ROOM) {
      this.#flush()
      this.#hash.update(line, 'utf8')
      return
    }
    if (this.#used + LINE_ROOM > BLOCK_BYTES) this.#flush()
    this.#used += this.#block.write(line, this.#used, 'utf8')
  }

  #flush(): void {
    if (this.#used === 0) return
    this.#hash.update(this.#block.subarray(0, this.#used))
    this.#used = 0
  }
}

/** Keys in a fixed order, no spaces. */
function lineOf(event: Event): string {
  const { seq, at, kind, taskId, nodeId, causedBy, data } = event
  const head = `{"seq":${seq},"at":${at},"kind":"${kind}","task":${quoted(taskId)},"node":${quoted(nodeId)}`
  return `${head},"cause":${String(causedBy)},"data":${JSON.stringify(data)}}\n`
}

const PLAIN = /^[\w.:/-]*$/

function quoted(text: string | null): string {
  if (text === null) return 'null'
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)
}
