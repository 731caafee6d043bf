/**
 * The REST API of one host: on a Unix socket whose permissions and peers say who the caller is, and on
 * TCP only when a port is set and a token exists.
 */
import { chmodSync, chownSync, mkdirSync, rmSync } from 'node:fs'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { dirname, resolve } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { SYSTEM_SOCKET, userSocket } from '../../clients/typescript/local-socket.ts'
import { StartFault, UsageError } from '../exit-codes.ts'
import { groupIdOf, SOCKET_GROUP, userNameOf } from '../host-users.ts'
import { SocketPeers } from './socket-peers.ts'
import { listenUnlogged } from '../listen-unlogged.ts'

const ADMIN_MODE = 0o600
const GROUP_MODE = 0o660

export interface LocalApiOptions {
  /** The guard program. */
  readonly program: string
  readonly socketPath: string
  /** null: no TCP. */
  readonly tcp: { readonly host: string; readonly port: number } | null
  readonly onNote: (line: string) => void
}

export class LocalApi {
  readonly peers: SocketPeers
  readonly #options: LocalApiOptions
  readonly #overTcp = new WeakSet<Socket>()
  #tcp: Server | null = null

  constructor(options: LocalApiOptions) {
    this.#options = options
    this.peers = new SocketPeers({
      program: options.program,
      ownUid: process.getuid?.() ?? 0,
      nameOf: userNameOf,
    })
  }

  get hasTcp(): boolean {
    return this.#options.tcp !== null
  }

  /** Resolves with the address, for the line at the start. Rejects with StartFault. */
  async listen(app: FastifyInstance): Promise<string> {
    const { socketPath, tcp } = this.#options
    await this.#removeStale()
    this.peers.attach(app.server, (socket) => this.#overTcp.has(socket))
    const mask = process.umask(0o077)
    try {
      await listenUnlogged(app, { path: socketPath })
    } catch (error) {
      throw new StartFault(`cannot listen on ${socketPath}: ${(error as Error).message}`)
    } finally {
      process.umask(mask)
    }
    this.#admitGroup()
    if (tcp === null) return `unix://${socketPath}`
    await this.#listenTcp(app, tcp)
    return `unix://${socketPath} and http://${tcp.host}:${tcp.port}`
  }

  close(): void {
    this.#tcp?.close()
  }

  /** A killed server leaves its socket. */
  async #removeStale(): Promise<void> {
    const { socketPath } = this.#options
    mkdirSync(dirname(socketPath), { recursive: true, mode: process.getuid?.() === 0 ? 0o755 : 0o700 })
    if (await accepts(socketPath))
      throw new StartFault(`${socketPath} is already in use: another server listens there`)
    rmSync(socketPath, { force: true })
  }

  #admitGroup(): void {
    const { socketPath, onNote } = this.#options
    const gid = process.getuid?.() === 0 ? groupIdOf(SOCKET_GROUP) : null
    if (gid === null) {
      chmodSync(socketPath, ADMIN_MODE)
      if (process.getuid?.() === 0)
        onNote(`group ${SOCKET_GROUP} does not exist: only root may use ${socketPath}`)
      return
    }
    chownSync(socketPath, 0, gid)
    chmodSync(socketPath, GROUP_MODE)
  }

  /** The connections are handled by the same server. */
  async #listenTcp(app: FastifyInstance, { host, port }: { host: string; port: number }): Promise<void> {
    const server = (this.#tcp = createServer((socket) => {
      this.#overTcp.add(socket)
      app.server.emit('connection', socket)
    }))
    server.maxConnections = app.server.maxConnections
    await new Promise<void>((done, fail) => {
      server.once('error', (error) =>
        fail(new StartFault(`cannot listen on ${host}:${port}: ${error.message}`)),
      )
      server.listen(port, host, done)
    })
  }
}

/** Default path of the socket. @throws UsageError without XDG_RUNTIME_DIR */
export function socketPathOf(
  given: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): string {
  if (given !== undefined) return resolve(given)
  if (process.getuid?.() === 0) return SYSTEM_SOCKET
  const path = userSocket(env)
  if (path === null)
    throw new UsageError('--standalone: XDG_RUNTIME_DIR is not set; set a socket with --socket')
  return path
}

function accepts(path: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = createConnection({ path })
    const settle = (isUp: boolean): void => {
      socket.destroy()
      done(isUp)
    }
    socket.once('connect', () => settle(true))
    socket.once('error', () => settle(false))
  })
}
