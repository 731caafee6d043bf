/** A client of channels into tasks, as a controller is. */
import { encodeFrame, endIn, FRAME, FrameReader, type ChannelEnd } from '../../protocol/channel-frames.ts'
import type { ChannelTarget } from '../../protocol/channel-messages.ts'
import type { ChannelsPort } from '../../gpu-server/core/channels-port.ts'

let opened = 0

export class TestChannel {
  readonly id: string
  readonly #channels: ChannelsPort
  readonly #frames = new FrameReader()
  readonly #texts = { out: [] as Uint8Array[], err: [] as Uint8Array[] }
  #written = 0
  end: ChannelEnd | null = null
  refusedRead: string | null = null

  private constructor(channels: ChannelsPort, id: string) {
    this.#channels = channels
    this.id = id
  }

  /** Resolves with the refusal when there is no channel. */
  static async open(
    channels: ChannelsPort,
    taskId: string,
    target: ChannelTarget,
    attempt = 1,
  ): Promise<TestChannel | string> {
    const channel = new TestChannel(channels, `channel-${(opened += 1)}`)
    const refused = await new Promise<{ readonly refused: string } | null>((done) =>
      channels.open({ taskId, attempt }, channel.id, target, done),
    )
    if (refused !== null) return refused.refused
    void channel.#readAll()
    return channel
  }

  static async exec(channels: ChannelsPort, taskId: string, script: string): Promise<TestChannel> {
    const target = { kind: 'exec', command: ['sh', '-c', script], terminal: null } as const
    const channel = await TestChannel.open(channels, taskId, target)
    if (typeof channel === 'string') throw new Error(channel)
    return channel
  }

  get out(): Buffer {
    return Buffer.concat(this.#texts.out)
  }

  get err(): string {
    return Buffer.concat(this.#texts.err).toString()
  }

  async send(content: string | Uint8Array, kind: number = FRAME.data): Promise<void> {
    const frame = encodeFrame(kind, Buffer.from(content as string))
    this.#written += 1
    const refused = await new Promise<{ readonly refused: string } | null>((done) =>
      this.#channels.write(this.id, this.#written, Buffer.from(frame).toString('base64'), done),
    )
    if (refused !== null) throw new Error(refused.refused)
  }

  sendEnd(): Promise<void> {
    return this.send('', FRAME.end)
  }

  close(): void {
    this.#channels.close(this.id)
  }

  async #readAll(): Promise<void> {
    for (let after = 0; ;) {
      const piece = await new Promise<Parameters<Parameters<ChannelsPort['read']>[2]>[0]>((done) =>
        this.#channels.read(this.id, after, done),
      )
      if ('refused' in piece) {
        this.refusedRead = piece.refused
        return
      }
      after = piece.n
      for (const { kind, content } of this.#frames.take(Buffer.from(piece.base64, 'base64'))) {
        if (kind === FRAME.data) this.#texts.out.push(content)
        else if (kind === FRAME.errors) this.#texts.err.push(content)
        else if (kind === FRAME.ended) this.end = endIn(content)
      }
      if (piece.isEnded) return
    }
  }
}
