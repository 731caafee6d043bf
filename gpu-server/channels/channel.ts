/**
 * One channel into a task, through a process of the guard program (guard/channel.c). Requests are answered in
 * order, and an answer is the permission for the next one: at most one request's worth of bytes waits for the
 * task, and a bounded number for the controller.
 */
import type { ChildProcess } from 'node:child_process'
import {
  encodeCut,
  encodeFrame,
  endIn,
  FRAME,
  FrameReader,
  requireOfClient,
  type Frame,
} from '../../protocol/channel-frames.ts'
import { MAX_CHANNEL_BYTES } from '../../protocol/limits.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { ChannelPiece, ChannelRefused } from '../core/channels-port.ts'

/** A read without data is answered after this time. */
const HOLD_MS: DurationMs = 2_000
/** A channel that is not read for this time is closed: its controller is gone. */
const UNREAD_MS: DurationMs = 15_000
/** The process must have connected to the task. */
const OPEN_WITHIN_MS: DurationMs = 15_000
/** Bytes that wait for the controller; beyond, the task is not read from. */
const MAX_WAITING_BYTES = 2 * MAX_CHANNEL_BYTES
const BAD_ORDER: ChannelRefused = { refused: 'bad_order' }

export type WriteDone = (refused: ChannelRefused | null) => void
export type ReadDone = (piece: ChannelPiece | ChannelRefused) => void

export class Channel {
  readonly #child: ChildProcess
  /** Callbacks of requests to open the channel that have no answer yet. */
  #onOpen: ((refused: ChannelRefused | null) => void)[]
  readonly #onClosed: () => void
  readonly #frames = new FrameReader()
  /** Frames for the controller, the first ones first. */
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #isOpen = false
  #isOver = false
  #isClosed = false
  #written = 0
  #hasRoom = true
  #onRoom: WriteDone | null = null
  /** The last data that was sent; null: it arrived. */
  #sent: ChannelPiece | null = null
  #arrived = 0
  #reader: ReadDone | null = null
  #hold: NodeJS.Timeout | null = null
  #watch: NodeJS.Timeout

  /**
   * @param request the first frame for the process; null: none
   * @param onOpen called once, with null when the task is connected
   * @param onClosed called once, when nothing is left of the channel
   */
  constructor(
    child: ChildProcess,
    request: Uint8Array | null,
    onOpen: (refused: ChannelRefused | null) => void,
    onClosed: () => void,
  ) {
    this.#child = child
    this.#onOpen = [onOpen]
    this.#onClosed = onClosed
    this.#watch = this.#closeAfter(OPEN_WITHIN_MS)
    child.once('error', () => this.#over('the process for it did not start'))
    child.once('close', () => this.#over('its process ended'))
    child.stdin?.on('error', () => undefined)
    child.stdin?.on('drain', () => this.#drained())
    child.stdout?.on('data', (bytes: Buffer) => this.#receive(bytes))
    if (request !== null) child.stdin?.write(encodeFrame(FRAME.request, request))
  }

  /** A repeated request to open it: its answer was lost, or is still to come. */
  openAgain(done: (refused: ChannelRefused | null) => void): void {
    if (this.#isOpen) setImmediate(() => done(null))
    else this.#onOpen.push(done)
  }

  write(n: number, base64: string, done: WriteDone): void {
    if (!this.#isOpen) return done(BAD_ORDER)
    if (n === this.#written) return this.#answerWrite(done)
    const bytes = Buffer.from(base64, 'base64')
    if (n !== this.#written + 1 || this.#onRoom !== null || !areOfClient(bytes)) return done(BAD_ORDER)
    this.#written = n
    // Data for an ended task is dropped.
    if (!this.#isOver && bytes.length > 0) this.#hasRoom = this.#child.stdin?.write(bytes) ?? true
    this.#answerWrite(done)
  }

  read(after: number, done: ReadDone): void {
    if (!this.#isOpen) return done(BAD_ORDER)
    this.#watchAgain(UNREAD_MS)
    if (this.#sent !== null && after === this.#sent.n - 1) return done(this.#sent)
    if (this.#sent !== null && after === this.#sent.n) {
      this.#arrived = after
      const { isEnded } = this.#sent
      this.#sent = null
      if (isEnded) return this.close()
    }
    if (after !== this.#arrived) return done(BAD_ORDER)
    this.#reader = done
    if (this.#hold !== null) clearTimeout(this.#hold)
    this.#hold = setTimeout(() => this.#answerEmpty(), HOLD_MS)
    this.#answerRead()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#watch)
    if (this.#hold !== null) clearTimeout(this.#hold)
    this.#child.kill('SIGKILL')
    this.#opened({ refused: 'channel_closed' })
    this.#onClosed()
  }

  #opened(refused: ChannelRefused | null): void {
    if (this.#isOpen) return
    this.#isOpen = true
    for (const done of this.#onOpen.splice(0)) done(refused)
    if (refused !== null) this.close()
  }

  #receive(bytes: Buffer): void {
    for (const frame of this.#frames.take(bytes)) {
      if (!this.#isOpen) this.#first(frame)
      else this.#queue(encodeFrame(frame.kind, frame.content), frame.kind === FRAME.ended)
    }
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#child.stdout?.pause()
  }

  #first({ kind, content }: Frame): void {
    if (kind === FRAME.opened) {
      this.#watchAgain(UNREAD_MS)
      return this.#opened(null)
    }
    const end = endIn(content)
    this.#opened({ refused: end.kind === 'cut' ? end.why : 'failed' })
  }

  #queue(bytes: Uint8Array, isLast: boolean): void {
    if (this.#isOver) return
    this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
    if (isLast) {
      this.#isOver = true
      this.#drained()
    }
    this.#answerRead()
  }

  #over(why: string): void {
    if (!this.#isOpen) return this.#opened({ refused: why })
    this.#queue(encodeCut(why), true)
  }

  #answerWrite(done: WriteDone): void {
    if (this.#hasRoom || this.#isOver) return done(null)
    this.#onRoom = done
  }

  #drained(): void {
    this.#hasRoom = true
    this.#onRoom?.(null)
    this.#onRoom = null
  }

  #answerRead(): void {
    const reader = this.#reader
    if (reader === null || this.#waiting.length === 0) return
    this.#reader = null
    if (this.#hold !== null) clearTimeout(this.#hold)
    const frames = this.#takeFrames()
    const isEnded = this.#isOver && this.#waiting.length === 0
    this.#sent = { n: this.#arrived + 1, base64: Buffer.concat(frames).toString('base64'), isEnded }
    if (this.#waitingBytes <= MAX_WAITING_BYTES) this.#child.stdout?.resume()
    reader(this.#sent)
  }

  /** Takes as many whole frames as fit into one message. */
  #takeFrames(): readonly Uint8Array[] {
    let count = 0
    let bytes = 0
    for (const frame of this.#waiting) {
      if (count > 0 && bytes + frame.length > MAX_CHANNEL_BYTES) break
      count += 1
      bytes += frame.length
    }
    this.#waitingBytes -= bytes
    return this.#waiting.splice(0, count)
  }

  #answerEmpty(): void {
    const reader = this.#reader
    this.#reader = null
    reader?.({ n: this.#arrived, base64: '', isEnded: false })
  }

  #watchAgain(ms: DurationMs): void {
    clearTimeout(this.#watch)
    this.#watch = this.#closeAfter(ms)
  }

  #closeAfter(ms: DurationMs): NodeJS.Timeout {
    return setTimeout(() => this.close(), ms)
  }
}

function areOfClient(bytes: Uint8Array): boolean {
  const frames = new FrameReader()
  try {
    frames.take(bytes).forEach(requireOfClient)
  } catch {
    return false
  }
  return frames.isEmpty
}
