/**
 * Requests that are not answered yet. They are counted by connection: one that goes away takes along those
 * that it still waited for, and one listener for each connection costs less than one for each answer.
 */
import type { Socket } from 'node:net'

interface Connection {
  waiting: number
  isClosed: boolean
}

export class InFlight {
  readonly #connections = new WeakMap<Socket, Connection>()
  #count = 0

  get count(): number {
    return this.#count
  }

  began(socket: Socket): void {
    const connection = this.#connections.get(socket) ?? this.#open(socket)
    // Of a request that came on the last bytes of a connection that is gone nobody would ever say that it is
    // over.
    if (connection.isClosed) return
    connection.waiting += 1
    this.#count += 1
  }

  /** Its answer is complete. */
  ended(socket: Socket): void {
    const connection = this.#connections.get(socket)
    if (connection === undefined || connection.isClosed || connection.waiting === 0) return
    connection.waiting -= 1
    this.#count -= 1
  }

  #open(socket: Socket): Connection {
    const connection = { waiting: 0, isClosed: socket.destroyed }
    this.#connections.set(socket, connection)
    socket.once('close', () => {
      connection.isClosed = true
      this.#count -= connection.waiting
    })
    return connection
  }
}
