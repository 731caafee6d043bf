/** A TCP proxy in front of PostgreSQL that cuts a connection at a commit. */
import { createConnection, createServer, type Server, type Socket } from 'node:net'

/** Its own name in the prepared statement, or its text: part of every message with a commit. */
const COMMIT = Buffer.from('commit')

export class CommitCutter {
  readonly port: number
  readonly #server: Server
  readonly #sockets: Set<Socket>
  #armed: { readonly at: 'before' | 'after'; done(): void } | null = null

  private constructor(port: number, server: Server, sockets: Set<Socket>) {
    this.port = port
    this.#server = server
    this.#sockets = sockets
  }

  static async start(target: number): Promise<CommitCutter> {
    const sockets = new Set<Socket>()
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const cutter = new CommitCutter(port, server, sockets)
    server.on('connection', (client) => cutter.#join(client, target))
    return cutter
  }

  /** Cuts the next commit, before the server receives it or after it answered; resolves when it is cut. */
  cut(at: 'before' | 'after'): Promise<void> {
    return new Promise((resolve) => {
      this.#armed = { at, done: resolve }
    })
  }

  #join(client: Socket, target: number): void {
    const server = createConnection(target, '127.0.0.1')
    let isAnswerCut = false
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#sockets.delete(socket)
        client.destroy()
        server.destroy()
      })
    }
    client.on('data', (data) => {
      const armed = this.#armed
      if (armed === null || !data.includes(COMMIT)) return void server.write(data)
      if (armed.at === 'before') return this.#finish(client, server)
      isAnswerCut = true
      return void server.write(data)
    })
    server.on('data', (data) => {
      if (isAnswerCut) return this.#finish(client, server)
      client.write(data)
    })
  }

  #finish(client: Socket, server: Socket): void {
    client.destroy()
    server.destroy()
    this.#armed?.done()
    this.#armed = null
  }

  async end(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
