/**
 * Identifies the callers of a Unix socket by the user of their process.
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { PEER_ID_PREFIX, type Peers } from '../../controller/api/auth/authenticator.ts'
import type { Caller } from '../../controller/api/auth/caller.ts'
import { socketPeer } from '../../gpu-server/guard/socket-peer.ts'

/** Connections that are identified at the same time; further ones wait. The server bounds their number. */
const MAX_AT_ONCE = 8

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
    const peer = socketPeer(program, socket)
    // The server has its listeners.
    socket.resume()
    const { uid } = await peer
    const isAdmin = uid === 0 || uid === ownUid
    this.#callers.set(socket, {
      name: nameOf(uid) ?? `uid-${uid}`,
      role: isAdmin ? 'admin' : 'submitter',
      tokenId: `${PEER_ID_PREFIX}${uid}`,
    })
  }
}
