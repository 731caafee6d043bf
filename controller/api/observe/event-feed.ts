/**
 * Durable events to many readers. Each reader first gets from the store what it has missed; then it stands
 * with those who hear the same, and the bytes for all of them are made once. Between the two nothing is lost
 * and nothing comes twice: the newest events are kept, and a reader joins only where they begin.
 */
import type { Readable } from 'node:stream'
import type { EventSource } from '../../engine/durable-events.ts'
import { isEventWanted, type Event, type EventFilter } from '../../model/event.ts'
import type { EventRange, StoreReads } from '../../ports/store.ts'
import { ApiProblem } from '../http/errors.ts'
import { HEARTBEAT_MS, MAX_STREAMS, SSE_HEARTBEAT, sseEvent } from '../http/server-sent-events.ts'
import {
  EventReader,
  LOW_WATER_BYTES,
  REAL_TIMERS,
  type ReaderTimers,
  type WantedEvents,
} from './event-reader.ts'
import { presentEvent } from './present-event.ts'

/** Events within this time are sent together, because each write to a reader has a cost. */
const GATHER_MS = 200
/** Maximum number of events sent together. */
const GATHER_EVENTS = 512
/** Read from the store at a time. */
const PAGE = 500
/** The summary, to those who want it, this often. */
const SUMMARY_EVERY_MS = 1_000
/** Readers are given so long to hear that the controller stops. */
const CLOSE_WITHIN_MS = 1_000
/** Delay after which a browser reconnects. */
const RETRY_MS = 2_000

interface EventFeedOptions {
  readonly source: EventSource
  readonly stored: StoreReads
  /** Returns the body of /summary; null: it is no longer told. */
  readonly summary: () => object | null
  readonly timers?: ReaderTimers
}

/** Readers who hear the same. */
interface Audience {
  readonly filter: EventFilter
  readonly readers: Set<EventReader>
}

export class EventFeed {
  readonly #stored: StoreReads
  readonly #summary: () => object | null
  readonly #timers: ReaderTimers
  readonly #recent = new RecentEvents()
  readonly #audiences = new Map<string, Audience>()
  readonly #readers = new Set<EventReader>()
  readonly #unsubscribe: () => void
  /** All that stand in an audience have everything up to here. */
  #toldSeq = 0
  #cancelTelling: (() => void) | null = null
  #cancelHeartbeat: (() => void) | null = null
  #cancelSummary: (() => void) | null = null
  #isClosed = false

  constructor({ source, stored, summary, timers = REAL_TIMERS }: EventFeedOptions) {
    this.#stored = stored
    this.#summary = summary
    this.#timers = timers
    this.#unsubscribe = source.subscribe((events) => this.#heard(events))
  }

  /** Number of readers. */
  get size(): number {
    return this.#readers.size
  }

  /**
   * The body of a stream. @param after the last event that the reader has; null: it wants what
   * happens from now on.
   * @throws ApiProblem too_many_streams; events_gone when what follows `after` is not kept any more, or
   *   `after` was never there.
   */
  async open(after: number | null, wanted: WantedEvents): Promise<Readable> {
    const range = await this.#stored.eventRange()
    if (after !== null) requireKept(after, range)
    if (this.#isClosed || this.#readers.size >= MAX_STREAMS) throw tooMany(this.#isClosed)
    const reader = new EventReader(wanted, after ?? range.lastSeq, this.#timers)
    this.#readers.add(reader)
    reader.body.once('close', () => this.#forget(reader))
    reader.write(Buffer.from(`retry: ${RETRY_MS}\n\n`))
    this.#cancelHeartbeat ??= this.#timers.after(HEARTBEAT_MS, () => this.#beat())
    if (wanted.wantsSummary) this.#cancelSummary ??= this.#timers.after(0, () => this.#tellSummary())
    this.#catchUp(reader).catch(() => reader.end('the store does not respond'))
    return reader.body
  }

  /** Tells all readers to reconnect. Resolves when they have received this, or after a short time. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#unsubscribe()
    this.#tell()
    const closed = [...this.#readers].map(
      (reader) => new Promise<void>((resolve) => reader.body.once('close', resolve)),
    )
    for (const reader of this.#readers) reader.end('the controller is stopping')
    for (const cancel of [this.#cancelHeartbeat, this.#cancelTelling, this.#cancelSummary]) cancel?.()
    let cancelWait = (): void => {}
    const waited = new Promise<void>((resolve) => {
      cancelWait = this.#timers.after(CLOSE_WITHIN_MS, resolve)
    })
    await Promise.race([Promise.all(closed), waited])
    cancelWait()
  }

  #heard(events: readonly Event[]): void {
    for (let from = 0; from < events.length; from += GATHER_EVENTS) {
      this.#recent.push(events.slice(from, from + GATHER_EVENTS))
      if (this.#audiences.size === 0) this.#toldSeq = this.#recent.lastSeq
      else if (this.#recent.lastSeq - this.#toldSeq >= GATHER_EVENTS) this.#tell()
      else this.#cancelTelling ??= this.#timers.after(GATHER_MS, () => this.#tell())
    }
  }

  /** Sends the collected events to all readers. */
  #tell(): void {
    this.#cancelTelling?.()
    this.#cancelTelling = null
    const news = this.#recent.after(this.#toldSeq)
    if (news.length === 0) return
    const told = this.#toldSeq
    this.#toldSeq = this.#recent.lastSeq
    for (const { filter, readers } of this.#audiences.values()) {
      const bytes = this.#framesOf(news, filter)
      for (const reader of readers) {
        // The store may show an event a moment before it is told here.
        if (reader.position > told) reader.write(this.#framesOf(this.#recent.after(reader.position), filter))
        else reader.write(bytes)
        reader.position = Math.max(reader.position, this.#toldSeq)
      }
    }
  }

  #framesOf(events: readonly Event[], filter: EventFilter): Buffer {
    const frames = events
      .filter((event) => isEventWanted(filter, event))
      .map((event) => this.#recent.frameOf(event))
    return frames.length === 1 && frames[0] !== undefined ? frames[0] : Buffer.concat(frames)
  }

  /** Reads from the store until the newest events begin at or before the reader's position. */
  async #catchUp(reader: EventReader): Promise<void> {
    while (reader.isOpen) {
      const range = await this.#stored.eventRange()
      if (isGone(reader.position, range)) return reader.end('the events that follow are no longer stored')
      await this.#sendStored(reader, range.lastSeq)
      if (!reader.isOpen) return
      if (reader.position >= this.#recent.floor) return this.#join(reader)
    }
  }

  async #sendStored(reader: EventReader, lastSeq: number): Promise<void> {
    while (reader.isOpen && reader.position < lastSeq) {
      const query = { ...reader.filter, afterSeq: reader.position, beforeSeq: lastSeq + 1, limit: PAGE }
      const events = await this.#stored.events(query)
      for (const piece of piecesOf(events)) {
        reader.write(piece)
        await reader.taken()
      }
      reader.position = events.length < PAGE ? lastSeq : (events.at(-1)?.seq ?? lastSeq)
    }
  }

  /**
   * It hears the rest with the others. The id tells it where it stands, also when nothing of what it wants
   * has happened.
   */
  #join(reader: EventReader): void {
    reader.write(this.#framesOf(this.#recent.after(reader.position), reader.filter))
    reader.position = Math.max(reader.position, this.#recent.lastSeq)
    reader.write(positionFrame(reader.position))
    const key = JSON.stringify(reader.filter)
    const audience = this.#audiences.get(key) ?? { filter: reader.filter, readers: new Set() }
    this.#audiences.set(key, audience)
    audience.readers.add(reader)
  }

  #forget(reader: EventReader): void {
    this.#readers.delete(reader)
    for (const [key, { readers }] of this.#audiences)
      if (readers.delete(reader) && readers.size === 0) this.#audiences.delete(key)
    if (this.#readers.size > 0) return
    this.#cancelHeartbeat?.()
    this.#cancelHeartbeat = null
  }

  #beat(): void {
    this.#cancelHeartbeat = this.#timers.after(HEARTBEAT_MS, () => this.#beat())
    this.#tell()
    const bare = Buffer.from(SSE_HEARTBEAT)
    const placed = Buffer.concat([bare, positionFrame(this.#toldSeq)])
    for (const { readers } of this.#audiences.values()) {
      for (const reader of readers) reader.write(reader.position > this.#toldSeq ? bare : placed)
    }
  }

  #tellSummary(): void {
    this.#cancelSummary = null
    const readers = [...this.#readers].filter((reader) => reader.wantsSummary)
    if (readers.length === 0 || this.#isClosed) return
    const summary = this.#summary()
    if (summary === null) return
    this.#cancelSummary = this.#timers.after(SUMMARY_EVERY_MS, () => this.#tellSummary())
    const bytes = Buffer.from(sseEvent('summary', summary))
    for (const reader of readers) reader.write(bytes)
  }
}

/** Returns a frame with the position of a reader, without an event. */
function positionFrame(seq: number): Buffer {
  return Buffer.from(`id: ${seq}\n\n`)
}

/** Not larger than a reader takes at a time, unless one event is. */
function* piecesOf(events: readonly Event[]): Generator<Buffer, void, undefined> {
  let [frames, bytes]: [Buffer[], number] = [[], 0]
  for (const event of events) {
    const frame = eventFrame(event)
    if (bytes > 0 && bytes + frame.length > LOW_WATER_BYTES) {
      yield Buffer.concat(frames)
      ;[frames, bytes] = [[], 0]
    }
    frames.push(frame)
    bytes += frame.length
  }
  if (bytes > 0) yield Buffer.concat(frames)
}

/** Some of what follows that event is not kept any more. After event 0 comes whatever is kept. */
function isGone(after: number, { firstSeq }: EventRange): boolean {
  return after > 0 && after < firstSeq - 1
}

function requireKept(after: number, range: EventRange): void {
  const detail = (why: string): string =>
    `${why} Read the state again, and continue from event ${range.lastSeq}.`
  if (isGone(after, range))
    throw new ApiProblem('events_gone', detail(`Events before ${range.firstSeq} are no longer stored.`))
  if (after > range.lastSeq)
    throw new ApiProblem('events_gone', detail(`Event ${after} does not exist: the log ends before it.`))
}

function tooMany(isClosed: boolean): ApiProblem {
  const detail = isClosed
    ? 'The controller is stopping.'
    : `${MAX_STREAMS} event streams are already open. Close one first.`
  return new ApiProblem('too_many_streams', detail, { headers: { 'retry-after': '5' } })
}

/**
 * Recent events in memory. A reader that has just caught up with the store finds later events here.
 */
const MAX_RECENT_EVENTS = 2_048

class RecentEvents {
  readonly #events: Event[] = []
  readonly #frames = new WeakMap<Event, Buffer>()
  #floor = 0

  /** Every event with a higher seq that was ever pushed is still here. */
  get floor(): number {
    return this.#floor
  }

  /** seq of the newest; 0 before the first. */
  get lastSeq(): number {
    return this.#events.at(-1)?.seq ?? 0
  }

  push(events: readonly Event[]): void {
    this.#events.push(...events)
    const excess = this.#events.length - MAX_RECENT_EVENTS
    if (excess > 0) this.#floor = this.#events.splice(0, excess).at(-1)?.seq ?? this.#floor
  }

  /** Returns the events with a higher seq, oldest first. */
  after(seq: number): readonly Event[] {
    const first = this.#events.findLastIndex((event) => event.seq <= seq) + 1
    return this.#events.slice(first)
  }

  /** The same bytes each time. */
  frameOf(event: Event): Buffer {
    const known = this.#frames.get(event)
    if (known !== undefined) return known
    const frame = eventFrame(event)
    this.#frames.set(event, frame)
    return frame
  }
}

function eventFrame(event: Event): Buffer {
  return Buffer.from(sseEvent('event', presentEvent(event), event.seq))
}
