/**
 * Passes the frames of one channel between a client's connection and the GPU server. Neither side is read
 * while the other one does not take what was read: at most some 256 KiB wait in each direction.
 */
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import {
  encodeCut,
  encodeFrame,
  endIn,
  FRAME,
  FrameReader,
  requireOfClient,
  type ChannelEnd,
} from '../../../protocol/channel-frames.ts'
import { MAX_CHANNEL_BYTES } from '../../../protocol/limits.ts'
import type { DurationMs } from '../../../protocol/units.ts'
import type { ChannelAnswer, ChannelPiece } from '../../ports/task-channels.ts'
import { roomIn } from './room.ts'

/** The channel at the GPU server. */
export interface FarEnd {
  write(n: number, data: string): Promise<ChannelAnswer<'written'>>
  read(after: number): Promise<ChannelAnswer<ChannelPiece>>
  close(): void
}

/** Bytes in both directions, without the heads of frames, and how it ended. */
export interface RelayedChannel {
  readonly bytesIn: number
  readonly bytesOut: number
  readonly end: ChannelEnd
}

/** Bytes of a client that wait for the GPU server; beyond, the client is not read from. */
const MAX_WAITING_BYTES = 2 * MAX_CHANNEL_BYTES
/** Reads without an answer, one after the other, until the GPU server counts as gone. */
const MAX_SILENT_READS = 3
const RETRY_MS: DurationMs = 500
/** The client may take what it was sent last. */
const LINGER_MS: DurationMs = 5_000
const CLIENT_GONE = 'the client has disconnected'

export class Relay {
  readonly #socket: Duplex
  readonly #far: FarEnd
  readonly #onEnd: (relayed: RelayedChannel) => void
  readonly #ofClient = new FrameReader()
  readonly #ofTask = new FrameReader()
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #isSending = false
  #sent = 0
  #bytesIn = 0
  #bytesOut = 0
  #isEnded = false
  #isActive = true

  /** @param onEnd called once */
  constructor(socket: Duplex, head: Uint8Array, far: FarEnd, onEnd: (relayed: RelayedChannel) => void) {
    this.#socket = socket
    this.#far = far
    this.#onEnd = onEnd
    socket.on('error', () => socket.destroy())
    socket.on('close', () => this.cut(CLIENT_GONE))
    socket.on('end', () => this.cut(CLIENT_GONE))
    socket.on('data', (bytes: Uint8Array) => this.#take(bytes))
    if (head.length > 0) this.#take(head)
    void this.#readAll()
  }

  /** True if bytes were passed since the last call. */
  wasActive(): boolean {
    const wasActive = this.#isActive
    this.#isActive = false
    return wasActive
  }

  /** Ends it at both sides. */
  cut(why: string): void {
    if (this.#isEnded) return
    // A client that got part of a frame sees that the connection ends.
    if (this.#ofTask.isEmpty && !this.#socket.destroyed) this.#socket.write(encodeCut(why))
    this.#end({ kind: 'cut', why })
  }

  #end(end: ChannelEnd): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#waiting = []
    this.#far.close()
    this.#socket.end()
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref()
    // Further data from the client is dropped.
    this.#socket.resume()
    this.#onEnd({ bytesIn: this.#bytesIn, bytesOut: this.#bytesOut, end })
  }

  // ── from the client ─────────────────────────────────────────────────────────

  #take(bytes: Uint8Array): void {
    if (this.#isEnded) return
    this.#isActive = true
    try {
      for (const frame of this.#ofClient.take(bytes)) {
        requireOfClient(frame)
        if (frame.kind === FRAME.data) this.#bytesIn += frame.content.length
        this.#waiting.push(encodeFrame(frame.kind, frame.content))
        this.#waitingBytes += frame.content.length
      }
    } catch (fault) {
      return this.cut((fault as Error).message)
    }
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#socket.pause()
    if (!this.#isSending) void this.#sendAll()
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true
    while (this.#waiting.length > 0 && !this.#isEnded) {
      const data = this.#takeFrames()
      this.#sent += 1
      if (!(await this.#send(this.#sent, data))) break
      if (this.#waitingBytes <= MAX_WAITING_BYTES) this.#socket.resume()
    }
    this.#isSending = false
  }

  /** Without an answer the task may not be reading; whether the server is there, the reads tell. */
  async #send(n: number, data: string): Promise<boolean> {
    while (!this.#isEnded) {
      const answer = await this.#far.write(n, data)
      if (answer === 'written') return true
      if (answer !== null) {
        this.cut(wordsOf(answer.refused))
        return false
      }
      await delay(RETRY_MS, undefined, { ref: false })
    }
    return false
  }

  #takeFrames(): string {
    let count = 0
    let bytes = 0
    for (const frame of this.#waiting) {
      if (count > 0 && bytes + frame.length > MAX_CHANNEL_BYTES) break
      count += 1
      bytes += frame.length
    }
    const frames = this.#waiting.splice(0, count)
    this.#waitingBytes = this.#waiting.reduce((sum, { length }) => sum + length, 0)
    return Buffer.concat(frames).toString('base64')
  }

  // ── from the task ───────────────────────────────────────────────────────────

  async #readAll(): Promise<void> {
    let after = 0
    let silentReads = 0
    while (!this.#isEnded) {
      const piece = await this.#far.read(after)
      if (this.#isEnded) return
      if (piece === null) {
        silentReads += 1
        if (silentReads >= MAX_SILENT_READS) return this.cut('the GPU server of the task does not respond')
        await delay(RETRY_MS, undefined, { ref: false })
        continue
      }
      silentReads = 0
      if ('refused' in piece) return this.cut(wordsOf(piece.refused))
      after = piece.n
      await this.#pass(Buffer.from(piece.data, 'base64'))
      if (piece.isEnded) return this.cut('the GPU server of the task closed the channel')
    }
  }

  async #pass(bytes: Buffer): Promise<void> {
    if (bytes.length === 0) return
    this.#isActive = true
    let end: ChannelEnd | null = null
    try {
      for (const { kind, content } of this.#ofTask.take(bytes)) {
        if (kind === FRAME.data || kind === FRAME.errors) this.#bytesOut += content.length
        if (kind === FRAME.ended) end = endIn(content)
      }
    } catch (fault) {
      return this.cut((fault as Error).message)
    }
    const hasRoom = this.#socket.write(bytes)
    if (end !== null) return this.#end(end)
    if (!hasRoom) await roomIn(this.#socket)
  }
}

function wordsOf(refused: string): string {
  return refused === 'unknown_channel'
    ? 'the GPU server of the task restarted, or it closed the channel'
    : `the GPU server of the task closed the channel (${refused})`
}
