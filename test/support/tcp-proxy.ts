/**
 * A TCP proxy in front of one port of the loopback interface. It can cut its connections as a network does:
 * bytes and closings stop in one direction or both, no side is told, and after the cut they arrive late. It
 * can be as slow as a long way.
 */
import { createConnection, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterEachFile } from './endings.ts'

/** `to`: from the client to the target. */
export type Direction = 'to' | 'from'
export const BOTH: readonly Direction[] = ['to', 'from']

const open = new Set<TcpProxy>()
afterEachFile(async () => {
  await Promise.all([...open].map((proxy) => proxy.end()))
})

interface Way {
  readonly direction: Direction
  readonly source: Socket
  readonly sink: Socket
  /** The source sends no more. */
  isOver: boolean
}

export class TcpProxy {
  readonly port: number
  readonly #server: Server
  readonly #delayMs: number
  readonly #ways = new Set<Way>()
  #cut: readonly Direction[] = []
  #awaited: { readonly text: string; act(): void } | null = null

  private constructor(server: Server, target: number, delayMs: number) {
    this.port = (server.address() as AddressInfo).port
    this.#server = server
    this.#delayMs = delayMs
    server.on('connection', (client) =>
      this.#join(client, createConnection({ port: target, host: '127.0.0.1', allowHalfOpen: true })),
    )
    open.add(this)
  }

  /** @param delayMs of all bytes, in each direction; a timer adds up to a millisecond */
  static async start(target: number, delayMs = 0): Promise<TcpProxy> {
    const server = createServer({ allowHalfOpen: true })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new TcpProxy(server, target, delayMs)
  }

  /** Also of connections that begin later. */
  cut(directions: readonly Direction[]): void {
    this.#cut = directions
    for (const { direction, source } of this.#ways) if (directions.includes(direction)) source.pause()
  }

  /** What was held arrives now. */
  heal(): void {
    this.#cut = []
    for (const way of this.#ways) {
      way.source.resume()
      if (way.isOver) this.#end(way)
    }
  }

  /**
   * Acts once, when bytes with this text have come from a client, before the target receives them: it
   * receives them after the cut if the action is a cut. @returns false: none came in time
   */
  async onSent(text: string, withinMs: number, act: () => void): Promise<boolean> {
    const seen = Promise.withResolvers<boolean>()
    this.#awaited = {
      text,
      act: () => {
        act()
        seen.resolve(true)
      },
    }
    const timer = setTimeout(() => seen.resolve(false), withinMs)
    const isSeen = await seen.promise
    clearTimeout(timer)
    this.#awaited = null
    return isSeen
  }

  #join(client: Socket, target: Socket): void {
    for (const socket of [client, target]) socket.on('error', () => {}).setNoDelay(true)
    this.#carry({ direction: 'to', source: client, sink: target, isOver: false })
    this.#carry({ direction: 'from', source: target, sink: client, isOver: false })
  }

  #carry(way: Way): void {
    const { direction, source, sink } = way
    this.#ways.add(way)
    source.on('data', (data) => {
      const awaited = this.#awaited
      if (awaited !== null && direction === 'to' && data.includes(awaited.text)) {
        this.#awaited = null
        awaited.act()
      }
      if (this.#cut.includes(direction)) source.unshift(data)
      else this.#later(() => sink.write(data))
    })
    for (const end of ['end', 'close'])
      source.on(end, () => {
        way.isOver = true
        if (!this.#cut.includes(direction)) this.#end(way)
      })
    if (this.#cut.includes(direction)) source.pause()
  }

  /** The other direction has an end of its own. */
  #end(way: Way): void {
    this.#ways.delete(way)
    this.#later(() => way.sink.end())
  }

  #later(pass: () => void): void {
    if (this.#delayMs === 0) pass()
    else setTimeout(pass, this.#delayMs)
  }

  async end(): Promise<void> {
    open.delete(this)
    for (const { source, sink } of this.#ways) for (const socket of [source, sink]) socket.destroy()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
