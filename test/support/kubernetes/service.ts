/** A Service with its proxy: each new connection goes to one of the endpoints that are ready then. */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { afterEachFile } from '../endings.ts'

const open = new Set<Service>()
afterEachFile(() => Promise.all([...open].map((service) => service.close())))

export class Service {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** New connections, by the port of the endpoint. */
  readonly connections = new Map<number, number>()

  private constructor(endpoints: () => readonly number[]) {
    this.#server = createServer((client) => {
      const ports = endpoints()
      const port = ports[Math.floor(Math.random() * ports.length)]
      if (port === undefined) return void client.destroy()
      this.connections.set(port, (this.connections.get(port) ?? 0) + 1)
      const endpoint = connect(port, '127.0.0.1')
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

  /** @param endpoints ports of the loopback interface */
  static async start(endpoints: () => readonly number[], port: number): Promise<Service> {
    const service = new Service(endpoints)
    open.add(service)
    await new Promise<void>((resolve) => service.#server.listen(port, '127.0.0.1', resolve))
    return service
  }

  async close(): Promise<void> {
    open.delete(this)
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
