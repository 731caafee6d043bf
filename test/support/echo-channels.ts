/** Channels of a simulated server: each command repeats its input and ends with 7; no port is open. */
import { RANK_DEVICE, type Clock } from '../../controller/ports/clock.ts'
import type { ChannelPiece, ChannelRefused, ChannelsPort } from '../../gpu-server/core/channels-port.ts'
import type { ChannelTarget } from '../../protocol/channel-messages.ts'
import { encodeFrame, FRAME, FrameReader } from '../../protocol/channel-frames.ts'

interface Held {
  readonly taskId: string
  readonly frames: FrameReader
  readonly input: Uint8Array[]
  readonly pieces: Uint8Array[]
  written: number
}

export interface EchoFaults {
  readonly isInputRepeated?: boolean
  readonly areErrorsLost?: boolean
  readonly areReadsSkipped?: boolean
  readonly isPortOpen?: boolean
  readonly isTaskOutlived?: boolean
  readonly isAnythingRead?: boolean
}

const READ_MS = 2_000

export class EchoChannels implements ChannelsPort {
  readonly #clock: Clock
  readonly #isAlive: (taskId: string) => boolean
  readonly #faults: EchoFaults
  readonly #held = new Map<string, Held>()

  constructor(clock: Clock, isAlive: (taskId: string) => boolean, faults: EchoFaults) {
    this.#clock = clock
    this.#isAlive = isAlive
    this.#faults = faults
  }

  open(
    { taskId }: { readonly taskId: string },
    channel: string,
    target: ChannelTarget,
    done: (refused: ChannelRefused | null) => void,
  ): void {
    const isClosed = target.kind === 'port' && this.#faults.isPortOpen !== true
    const refused = isClosed ? 'port_closed' : null
    if (refused === null && !this.#held.has(channel))
      this.#held.set(channel, { taskId, frames: new FrameReader(), input: [], pieces: [], written: 0 })
    this.#soon(() => done(refused === null ? null : { refused }))
  }

  write(channel: string, n: number, base64: string, done: (refused: ChannelRefused | null) => void): void {
    const held = this.#held.get(channel)
    if (held === undefined) return this.#soon(() => done({ refused: 'unknown_channel' }))
    if (n > held.written || this.#faults.isInputRepeated === true)
      for (const { kind, content } of held.frames.take(Buffer.from(base64, 'base64'))) {
        if (kind === FRAME.data) held.input.push(content)
        if (kind === FRAME.end) held.pieces.push(...this.#output(held))
      }
    held.written = n
    this.#soon(() => done(null))
  }

  read(channel: string, after: number, done: (piece: ChannelPiece | ChannelRefused) => void): void {
    const held = this.#held.get(channel)
    const isOver = held !== undefined && this.#faults.isTaskOutlived !== true && !this.#isAlive(held.taskId)
    if ((held === undefined && this.#faults.isAnythingRead !== true) || isOver)
      return this.#soon(() => done({ refused: 'unknown_channel' }))
    const piece = held?.pieces[after]
    if (held === undefined || piece === undefined)
      return void this.#clock.at(this.#clock.now() + READ_MS, () =>
        done({ n: after, base64: '', isEnded: false }),
      )
    const isEnded = after + 1 === held.pieces.length
    if (this.#faults.areReadsSkipped === true) held.pieces.splice(after, 1)
    this.#soon(() => done({ n: after + 1, base64: Buffer.from(piece).toString('base64'), isEnded }))
  }

  close(channel: string): void {
    this.#held.delete(channel)
  }

  #output({ input }: Held): readonly Uint8Array[] {
    const text = (content: string): Uint8Array => new TextEncoder().encode(content)
    return [
      encodeFrame(FRAME.data, Buffer.concat(input)),
      ...(this.#faults.areErrorsLost === true ? [] : [encodeFrame(FRAME.errors, text('told\n'))]),
      encodeFrame(FRAME.ended, text('code 7')),
    ]
  }

  #soon(fn: () => void): void {
    this.#clock.soon(fn, RANK_DEVICE)
  }
}
