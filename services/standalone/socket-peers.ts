/**
 * Identifies the callers of a Unix socket by the user of their process (SO_PEERCRED). Node cannot ask the
 * kernel itself: the guard program reads it from the socket, which it inherits (docs/decisions/0112).
 */
import { spawn } from 'node:child_process'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { PEER_ID_PREFIX, type Peers } from '../../controller/api/auth/authenticator.ts'
import type { Caller } from '../../controller/api/auth/caller.ts'

/** Connections that are identified at the same time; further ones wait. The server bounds their number. */
const MAX_AT_ONCE = 8
/** Time for the helper to answer. */
const TIMEOUT_MS = 5_000

export interface SocketPeersOptions {
  /** The guard program. */
  readonly program: string
  /** The user of this process, who is an admin as root is. */
  readonly ownUid: number
  /** Name of a user, for the owner of tasks; null: unknown. */
  readonly nameOf: (uid: number) => string | null
}

export class SocketPeers implements Peers {
  readonly #options: SocketPeersOptions
  readonly #pending = new WeakMap<Socket, Promise<void>>()
  readonly #callers = new WeakMap<Socket, Caller>()
  /** Connections whose turn has not come. */
  readonly #waiting: (() => void)[] = []
  #atOnce = 0

  constructor(options: SocketPeersOptions) {
    this.#options = options
  }

  /** Identifies every connection of the server, except those that `isOther` names. */
  attach(server: Server, isOther: (socket: Socket) => boolean): void {
    server.on('connection', (socket: Socket) => {
      if (!isOther(socket)) this.#begin(socket)
    })
  }

  identified(socket: Socket): Promise<void> {
    return this.#pending.get(socket) ?? Promise.resolve()
  }

  callerOf(socket: Socket): Caller | null {
    return this.#callers.get(socket) ?? null
  }

  #begin(socket: Socket): void {
    const work = this.#turn()
      .then(() => this.#identify(socket))
      .catch(() => void socket.destroy())
      .finally(() => this.#next())
    this.#pending.set(socket, work)
  }

  #turn(): Promise<void> {
    if (this.#atOnce >= MAX_AT_ONCE) return new Promise((resolve) => this.#waiting.push(resolve))
    this.#atOnce += 1
    return Promise.resolve()
  }

  /** Passes the turn on. */
  #next(): void {
    const begin = this.#waiting.shift()
    if (begin === undefined) this.#atOnce -= 1
    else begin()
  }

  async #identify(socket: Socket): Promise<void> {
    const { program, ownUid, nameOf } = this.#options
    // As descriptor 3: a child makes an inherited descriptor 0, 1 or 2 blocking, for this process as well.
    const helper = spawn(program, ['--peer'], {
      stdio: ['ignore', 'pipe', 'ignore', socket],
      timeout: TIMEOUT_MS,
      killSignal: 'SIGKILL',
    })
    // The child's start has paused it.
    socket.resume()
    const answer = await new Promise<string>((resolve, reject) => {
      helper.once('error', reject)
      if (helper.stdout !== null) text(helper.stdout).then(resolve, reject)
    })
    const uid = /^\d{1,10}\n$/.test(answer) ? Number(answer) : null
    if (uid === null) throw new Error('the user of a connection is unknown')
    const isAdmin = uid === 0 || uid === ownUid
    this.#callers.set(socket, {
      name: nameOf(uid) ?? `uid-${uid}`,
      role: isAdmin ? 'admin' : 'submitter',
      tokenId: `${PEER_ID_PREFIX}${uid}`,
    })
  }
}
