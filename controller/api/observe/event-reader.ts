/** One reader of a stream of events: a body that is bounded in bytes. */
import { Readable } from 'node:stream'
import type { EventFilter } from '../../model/event.ts'

/** Maximum size of the events that wait for a reader. A slower reader is disconnected and must reconnect. */
export const MAX_WAITING_BYTES = 4_194_304
/** Events from the store are read only when the reader has at most this many unread bytes. */
export const LOW_WATER_BYTES = 65_536
/** After the last comment, one that takes nothing any more is cut off. */
const END_WITHIN_MS = 10_000

/** Timers, so that tests can do without. */
export interface ReaderTimers {
  /** @returns takes it back. */
  after(ms: number, fn: () => void): () => void
}

export const REAL_TIMERS: ReaderTimers = {
  after: (ms, fn) => {
    const timer = setTimeout(fn, ms).unref()
    return () => clearTimeout(timer)
  },
}

export interface WantedEvents {
  readonly filter: EventFilter
  readonly wantsSummary: boolean
}

export class EventReader {
  readonly filter: EventFilter
  /** The reader also receives the summary, repeatedly. */
  readonly wantsSummary: boolean
  readonly body: Readable
  /** The reader has all events up to this one. */
  position: number
  readonly #timers: ReaderTimers
  #isEnding = false
  #wake: (() => void) | null = null

  constructor({ filter, wantsSummary }: WantedEvents, position: number, timers: ReaderTimers) {
    this.filter = filter
    this.wantsSummary = wantsSummary
    this.position = position
    this.#timers = timers
    this.body = new Readable({ highWaterMark: LOW_WATER_BYTES, read: () => this.#wakeUp() })
    this.body.once('close', () => this.#wakeUp())
    // A reader that disconnects early is not an error.
    this.body.on('error', () => {})
  }

  get isOpen(): boolean {
    return !this.#isEnding && !this.body.destroyed
  }

  /** A reader that is too far behind is disconnected, and reconnects at its position. */
  write(bytes: Buffer): void {
    if (!this.isOpen || bytes.length === 0) return
    const waitingBytes = this.body.readableLength
    if (waitingBytes > 0 && waitingBytes + bytes.length > MAX_WAITING_BYTES)
      this.end(`the client reads too slowly: more than ${MAX_WAITING_BYTES} bytes are waiting`)
    else this.body.push(bytes)
  }

  /** The last it hears; `why` as a comment. */
  end(why: string): void {
    if (!this.isOpen) return
    this.#isEnding = true
    this.body.push(`: ${why}; reconnect with Last-Event-ID\n\n`)
    this.body.push(null)
    const cancel = this.#timers.after(END_WITHIN_MS, () => this.body.destroy())
    this.body.once('close', cancel)
    this.#wakeUp()
  }

  /** Resolves once little waits for it, or it has gone. */
  async taken(): Promise<void> {
    while (this.isOpen && this.body.readableLength >= LOW_WATER_BYTES) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  #wakeUp(): void {
    const wake = this.#wake
    this.#wake = null
    wake?.()
  }
}
