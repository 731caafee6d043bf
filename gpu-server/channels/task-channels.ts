/** Channels into the tasks of this host, each through a process of its own (docs/decisions/0123). */
import { spawn } from 'node:child_process'
import type { ChannelTarget } from '../../protocol/channel-messages.ts'
import type { ChannelPiece, ChannelRefused, ChannelsPort } from '../core/channels-port.ts'
import type { Guards } from '../guard/guards.ts'
import { Channel } from './channel.ts'

export interface TaskChannelsOptions {
  /** The guard program. */
  readonly program: string
  readonly guards: Pick<Guards, 'folderOf' | 'processIds'>
}

/** Maximum channels into all tasks of this host, and into one attempt. */
const MAX_CHANNELS = 128
const MAX_CHANNELS_OF_ATTEMPT = 32
const UNKNOWN: ChannelRefused = { refused: 'unknown_channel' }

interface Held {
  readonly of: string
  readonly channel: Channel
}

type Process =
  { readonly args: readonly string[]; readonly request: Uint8Array | null } | { readonly refused: string }

export class TaskChannels implements ChannelsPort {
  readonly #options: TaskChannelsOptions
  readonly #held = new Map<string, Held>()

  constructor(options: TaskChannelsOptions) {
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
    if (this.#held.size >= MAX_CHANNELS || ofAttempt >= MAX_CHANNELS_OF_ATTEMPT || this.#held.has(id))
      return void setImmediate(() => done({ refused: 'too_many_channels' }))
    const how = this.#processFor(taskId, attempt, target)
    if ('refused' in how) return void setImmediate(() => done(how))
    const child = spawn(this.#options.program, how.args, {
      env: {},
      cwd: '/',
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    const channel = new Channel(child, how.request, done, () => this.#held.delete(id))
    this.#held.set(id, { of, channel })
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

  #processFor(taskId: string, attempt: number, target: ChannelTarget): Process {
    const { guards } = this.#options
    if (target.kind === 'exec') {
      const folder = guards.folderOf(taskId, attempt)
      if (folder === null) return { refused: 'unknown_attempt' }
      return { args: ['--exec', folder], request: requestFor(target) }
    }
    const pids = guards.processIds(taskId, attempt)
    if (pids.length === 0) return { refused: 'unknown_attempt' }
    return { args: ['--forward', String(target.port), pids.join(',')], request: null }
  }
}

/** As added_request_read in guard/spec.c reads it. */
function requestFor({ command, terminal }: Extract<ChannelTarget, { kind: 'exec' }>): Uint8Array {
  const { rows = 0, columns = 0, kind = '' } = terminal ?? {}
  const fields = [terminal === null ? 0 : 1, rows, columns, kind, command.length, ...command]
  return Buffer.from(fields.map((field) => `${field}\0`).join(''))
}
