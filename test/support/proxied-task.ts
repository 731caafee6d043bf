/** A proxy of the guard program in front of a real task, and what clients do with it. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect } from 'vitest'
import { GuardLink } from '../../gpu-server/guard/guard-link.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import {
  startProxy,
  proxyCountsIn,
  type ProxyCounts,
  type ProxyStart,
} from '../../gpu-server/guard/start-proxy.ts'
import type { LaunchSpec } from '../../gpu-server/guard/guards.ts'
import { freePort } from './free-port.ts'
import { attemptFolder, until, type GuardWorld } from './guard-world.ts'

/** The range of these tests, which run at the same time. */
export const PORTS = { from: 30_100, to: 31_099 }

export interface ProxiedTask {
  readonly folder: string
  readonly port: number
  readonly link: GuardLink
  /** Lines that it said by itself. */
  readonly events: readonly string[]
  counts(): Promise<ProxyCounts>
  client(): Promise<TestClient>
}

/** Starts the proxy of a task that listens on `target`. */
export async function proxied(
  world: GuardWorld,
  taskId: string,
  target: number,
  more: Partial<ProxyStart> & { readonly protocol?: 'tcp' | 'http' } = {},
): Promise<ProxiedTask> {
  const { protocol = 'tcp', ...options } = more
  const folder = attemptFolder(world.folder, taskId)
  const ports = await startProxy({
    program: await guardProgram(),
    folder,
    address: '127.0.0.1',
    ports: PORTS,
    next: PORTS.from + Math.floor(Math.random() * 1000),
    targets: [{ target, protocol }],
    isOut: false,
    holdMs: 60_000,
    maxHeld: 100,
    ...options,
  })
  if ('error' in ports) throw new Error(ports.error)
  const [port = 0] = ports
  return linked(folder, port)
}

/** Connects to a proxy that runs, as a server that adopts it does. */
export async function linked(folder: string, port: number): Promise<ProxiedTask> {
  const events: string[] = []
  const link = await GuardLink.open(
    folder,
    { onLine: (line) => events.push(line), onClosed: () => {} },
    'proxy',
  )
  return {
    folder,
    port,
    link,
    events,
    async counts() {
      const counts = proxyCountsIn(await link.ask('stat'))
      if (counts === null) throw new Error('these are no counts')
      return counts
    },
    client: () => TestClient.open(port),
  }
}

export class TestClient {
  readonly socket: Socket
  #received: Buffer[] = []
  #size = 0
  error: string | null = null
  isEnded = false
  isClosed = false

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#received.push(chunk)
      this.#size += chunk.length
    })
    socket.on('end', () => (this.isEnded = true))
    socket.on('error', (error: NodeJS.ErrnoException) => (this.error = error.code ?? error.message))
    socket.on('close', () => (this.isClosed = true))
  }

  static async open(port: number, host = '127.0.0.1'): Promise<TestClient> {
    const client = new TestClient(connect({ port, host, allowHalfOpen: true }))
    // A reset may be seen before the connection.
    await Promise.race([once(client.socket, 'connect'), once(client.socket, 'close')]).catch(() => {})
    return client
  }

  get size(): number {
    return this.#size
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#received)
  }

  get text(): string {
    return this.bytes.toString()
  }

  async receives(text: string): Promise<void> {
    await until(`it receives ${JSON.stringify(text)}`, () => this.text === text)
  }
}

/** Runs a Node program in a task; it listens on the port of its first argument. Resolves once it does. */
export async function serving(
  world: GuardWorld,
  taskId: string,
  program: string,
  { prefix = 'exec', ...more }: Partial<LaunchSpec> & { readonly prefix?: string } = {},
): Promise<number> {
  const port = await freePort()
  await world.sh(taskId, `${prefix} ${process.execPath} -e '${program}' ${port}`, more)
  await expect.poll(() => world.output(taskId)).toContain('listening')
  return port
}
