/**
 * Channels that are open at GPU servers: each waits for the connection of its client, which a secret path
 * identifies, and then passes bytes until one side ends. Bounded in number, in time, and by the caller's
 * token.
 */
import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import type { ChannelEnd } from '../../../protocol/channel-frames.ts'
import type { ChannelTarget } from '../../../protocol/channel-messages.ts'
import type { DurationMs } from '../../../protocol/units.ts'
import type { TaskChannels } from '../../ports/task-channels.ts'
import type { Access } from '../auth/access.ts'
import type { AuditSubject } from '../auth/audit-trail.ts'
import { ApiProblem } from '../http/errors.ts'
import { Relay, type RelayedChannel } from './relay.ts'

/** The attempt of a task, and the caller. */
export interface ChannelPlace {
  readonly taskId: string
  readonly attempt: number
  readonly nodeId: string
  readonly nodeName: string
  /** Subject of the request that opens the channel. */
  readonly subject: AuditSubject
}

export interface ChannelLimits {
  /** Maximum number of open channels, of all callers and of one caller. */
  readonly maxOpen: number
  readonly maxOfCaller: number
  /** Time limit for the client to connect. */
  readonly connectMs: DurationMs
  /** Without a byte in either direction. */
  readonly idleMs: DurationMs
  readonly totalMs: DurationMs
}

const CHANNEL_LIMITS: ChannelLimits = {
  maxOpen: 512,
  maxOfCaller: 64,
  connectMs: 10_000,
  idleMs: 3_600_000,
  totalMs: 86_400_000,
}
const LOOK_EVERY_MS: DurationMs = 5_000
const SECRET_BYTES = 32
const ID_BYTES = 16

interface Held {
  readonly id: string
  readonly place: ChannelPlace
  readonly target: ChannelTarget
  readonly caller: string
  readonly openedAt: number
  activeAt: number
  /** Closes it unless its client connects. */
  timer: NodeJS.Timeout
  relay: Relay | null
}

export class OpenChannels {
  readonly #channels: TaskChannels
  readonly #access: Pick<Access, 'authenticator' | 'trail' | 'now'>
  readonly #limits: ChannelLimits
  readonly #waiting = new Map<string, Held>()
  readonly #held = new Set<Held>()
  #opening = 0
  #look: NodeJS.Timeout | null = null

  constructor(
    channels: TaskChannels,
    access: Pick<Access, 'authenticator' | 'trail' | 'now'>,
    limits: Partial<ChannelLimits> = {},
  ) {
    this.#channels = channels
    this.#access = access
    this.#limits = { ...CHANNEL_LIMITS, ...limits }
  }

  get count(): number {
    return this.#held.size
  }

  /**
   * Resolves with the secret for the client's connection, with the reason of the GPU server, or null without
   * an answer. @throws ApiProblem too_many_streams
   */
  async open(
    place: ChannelPlace,
    target: ChannelTarget,
  ): Promise<string | { readonly refused: string } | null> {
    const caller = place.subject.tokenId ?? place.subject.address ?? ''
    this.#requireRoom(caller)
    const id = randomBytes(ID_BYTES).toString('hex')
    this.#opening += 1
    let answer
    try {
      answer = await this.#channels.open(place, id, target)
    } finally {
      this.#opening -= 1
    }
    if (answer !== 'opened') {
      // Without an answer it may be open.
      if (answer === null) this.#channels.close(place.nodeId, id)
      return answer
    }
    return this.#hold(id, place, target, caller)
  }

  /**
   * Returns false when no channel waits under this secret: nothing was done with the connection.
   * @param accept answers the client, before any frame
   */
  connect(secret: string, socket: Duplex, head: Uint8Array, accept: () => void): boolean {
    const held = this.#waiting.get(secret)
    if (held === undefined) return false
    this.#waiting.delete(secret)
    clearTimeout(held.timer)
    const { id, place } = held
    const { nodeId } = place
    const far = {
      write: (n: number, data: string) => this.#channels.write(nodeId, id, n, data),
      read: (after: number) => this.#channels.read(nodeId, id, after),
      close: () => this.#channels.close(nodeId, id),
    }
    accept()
    held.relay = new Relay(socket, head, far, (relayed) => this.#ended(held, relayed))
    return true
  }

  closeAll(): void {
    for (const held of this.#held) {
      if (held.relay === null) this.#expire(held, 'the controller is stopping')
      else held.relay.cut('the controller is stopping')
    }
  }

  #hold(id: string, place: ChannelPlace, target: ChannelTarget, caller: string): string {
    const secret = randomBytes(SECRET_BYTES).toString('base64url')
    const now = performance.now()
    const timer = setTimeout(() => {
      this.#waiting.delete(secret)
      this.#expire(held, 'the client did not connect')
    }, this.#limits.connectMs).unref()
    const held: Held = { id, place, target, caller, openedAt: now, activeAt: now, timer, relay: null }
    this.#waiting.set(secret, held)
    this.#held.add(held)
    this.#look ??= setInterval(() => this.#endStale(), LOOK_EVERY_MS).unref()
    this.#access.trail?.note({ ...place.subject, target: `${aboutOf(held)}: ${wordsOf(target)}` })
    return secret
  }

  #requireRoom(caller: string): void {
    const { maxOpen, maxOfCaller } = this.#limits
    const ofCaller = [...this.#held].filter((held) => held.caller === caller).length
    if (this.#held.size + this.#opening < maxOpen && ofCaller < maxOfCaller) return
    const limit =
      ofCaller < maxOfCaller ? `limit for all callers: ${maxOpen}` : `limit per caller: ${maxOfCaller}`
    throw new ApiProblem('too_many_streams', `Too many channels are open (${limit}). Close one first.`, {
      headers: { 'retry-after': '5' },
    })
  }

  #endStale(): void {
    const { idleMs, totalMs } = this.#limits
    const now = performance.now()
    for (const held of this.#held) {
      const { relay, place } = held
      if (relay === null) continue
      const { tokenId } = place.subject
      if (relay.wasActive()) held.activeAt = now
      if (tokenId !== null && !this.#access.authenticator.isGood(tokenId))
        relay.cut('the token was revoked or has expired')
      else if (now - held.activeAt > idleMs) relay.cut(`no data was sent for ${idleMs / 60_000} minutes`)
      else if (now - held.openedAt > totalMs)
        relay.cut(`the channel was open for ${totalMs / 3_600_000} hours, which is the limit`)
    }
  }

  #expire(held: Held, why: string): void {
    clearTimeout(held.timer)
    this.#channels.close(held.place.nodeId, held.id)
    this.#ended(held, { bytesIn: 0, bytesOut: 0, end: { kind: 'cut', why } })
  }

  #ended(held: Held, { bytesIn, bytesOut, end }: RelayedChannel): void {
    if (!this.#held.delete(held)) return
    if (this.#held.size === 0 && this.#look !== null) {
      clearInterval(this.#look)
      this.#look = null
    }
    const seconds = Math.round((performance.now() - held.openedAt) / 1000)
    const figures = `after ${seconds} s, ${bytesIn} bytes in, ${bytesOut} out`
    this.#access.trail?.note({
      ...held.place.subject,
      action: 'closeChannel',
      target: `${aboutOf(held)}: ${endInWords(end)} ${figures}: ${wordsOf(held.target)}`,
    })
  }
}

function aboutOf({ id, place }: Held): string {
  return `task ${place.taskId} attempt ${place.attempt} channel ${id.slice(0, 8)}`
}

function wordsOf(target: ChannelTarget): string {
  return target.kind === 'port' ? `port ${target.port}` : `exec ${JSON.stringify(target.command)}`
}

function endInWords(end: ChannelEnd): string {
  switch (end.kind) {
    case 'exit':
      return `exit code ${end.code}`
    case 'signal':
      return `signal ${end.number}`
    case 'closed':
      return 'closed'
    case 'cut':
      return end.why
  }
}
