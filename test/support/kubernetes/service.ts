/** A Service with its proxy: each new connection goes to one of the endpoints that are ready then. */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterEachFile } from '../endings.ts'

const open = new Set<Service>()
afterEachFile(() => Promise.all([...open].map((service) => service.close())))

export interface Endpoint {
  readonly host: string
  readonly port: number
}

const LOOPBACK = '127.0.0.1'

export class Service {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** New connections, by the port of the endpoint. */
  readonly connections = new Map<number, number>()

  private constructor(endpoints: () => readonly Endpoint[]) {
    this.#server = createServer((client) => {
      const all = endpoints()
      const chosen = all[Math.floor(Math.random() * all.length)]
      if (chosen === undefined) return void client.destroy()
      const { host, port } = chosen
      this.connections.set(port, (this.connections.get(port) ?? 0) + 1)
      const endpoint = connect(port, host)
      for (const [socket, other] of [
        [client, endpoint],
        [endpoint, client],
      ] as const) {
        this.#sockets.add(socket)
        socket.on('error', () => other.destroy())
        socket.on('close', () => {
          this.#sockets.delete(socket)
          other.destroy()
        })
        socket.pipe(other)
      }
    })
  }

  /** @param endpoints ports of the loopback interface, or endpoints elsewhere */
  static async start(
    endpoints: () => readonly (number | Endpoint)[],
    port: number,
    host = LOOPBACK,
  ): Promise<Service> {
    const service = new Service(() =>
      endpoints().map((each) => (typeof each === 'number' ? { host: LOOPBACK, port: each } : each)),
    )
    open.add(service)
    await new Promise<void>((resolve, reject) =>
      service.#server.once('error', reject).listen(port, host, resolve),
    )
    return service
  }

  async close(): Promise<void> {
    open.delete(this)
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
