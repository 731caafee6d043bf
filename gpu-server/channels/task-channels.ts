/** Channels into the tasks of this host, each through a process of its own (docs/decisions/0123). */
import { isDeepStrictEqual } from 'node:util'
import type { ChannelTarget } from '../../protocol/channel-messages.ts'
import type { ChannelPiece, ChannelRefused, ChannelsPort } from '../core/channels-port.ts'
import { Channel } from './channel.ts'
import { startChannelProcess, type ChannelHost } from './channel-process.ts'

/** Maximum channels into all tasks of this host, and into one attempt. */
const MAX_CHANNELS = 128
const MAX_CHANNELS_OF_ATTEMPT = 32
const UNKNOWN: ChannelRefused = { refused: 'unknown_channel' }

interface Held {
  readonly of: string
  readonly target: ChannelTarget
  readonly channel: Channel
}

export class TaskChannels implements ChannelsPort {
  readonly #options: ChannelHost
  readonly #held = new Map<string, Held>()

  constructor(options: ChannelHost) {
    this.#options = options
  }

  /** Channels that are open or about to be. */
  get count(): number {
    return this.#held.size
  }

  open(
    { taskId, attempt }: { readonly taskId: string; readonly attempt: number },
    id: string,
    target: ChannelTarget,
    done: (refused: ChannelRefused | null) => void,
  ): void {
    const of = `${taskId} ${attempt}`
    const ofAttempt = [...this.#held.values()].filter((held) => held.of === of).length
    const before = this.#held.get(id)
    if (before?.of === of && isDeepStrictEqual(before.target, target)) return before.channel.openAgain(done)
    if (before !== undefined) return void setImmediate(() => done({ refused: 'channel_exists' }))
    if (this.#held.size >= MAX_CHANNELS || ofAttempt >= MAX_CHANNELS_OF_ATTEMPT)
      return void setImmediate(() => done({ refused: 'too_many_channels' }))
    const started = startChannelProcess(this.#options, taskId, attempt, target)
    if ('refused' in started) return void setImmediate(() => done(started))
    const { child, request } = started
    const channel = new Channel(child, request, done, () => this.#held.delete(id))
    this.#held.set(id, { of, target, channel })
  }

  write(id: string, n: number, base64: string, done: (refused: ChannelRefused | null) => void): void {
    const held = this.#held.get(id)
    if (held === undefined) done(UNKNOWN)
    else held.channel.write(n, base64, done)
  }

  read(id: string, after: number, done: (piece: ChannelPiece | ChannelRefused) => void): void {
    const held = this.#held.get(id)
    if (held === undefined) done(UNKNOWN)
    else held.channel.read(after, done)
  }

  close(id: string): void {
    this.#held.get(id)?.channel.close()
  }

  closeAll(): void {
    for (const { channel } of [...this.#held.values()]) channel.close()
  }
}
