/** A proxy of the guard program in front of a real task, and what clients do with it. */
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { vi } from 'vitest'
import { GuardLink } from '../../gpu-server/guard/guard-link.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import { isRunnable } from '../../gpu-server/guard/process-table.ts'
import {
  startProxy,
  proxyCountsIn,
  type ProxyCounts,
  type ProxyStart,
} from '../../gpu-server/guard/start-proxy.ts'
import type { LaunchSpec } from '../../gpu-server/guard/guards.ts'
import { freePort } from './free-port.ts'
import { attemptFolder, until, type GuardWorld } from './guard-world.ts'

const WITHIN_MS = 90_000
const BLOCK = 100
const first = 20_000 + BLOCK * Math.floor(Math.random() * 100)
/** Another range for each test file: they run at the same time. */
export const PORTS = { from: first, to: first + BLOCK - 1 }

/** The end of a program of a task: its server `s` listens. */
export const LISTEN =
  's.listen({ port: Number(process.argv[1]), host: "127.0.0.1", backlog: 1024 }, ' +
  '() => console.log("listening"))'
/** Sends everything back, and ends when the client does. */
export const ECHO =
  'const s = require("net").createServer({ allowHalfOpen: true }, ' +
  `(c) => { c.on("error", () => {}); c.pipe(c) }); ${LISTEN}`
/** Names the connections in the order in which they were accepted. */
export const ORDER =
  'let n = 0; const s = require("net").createServer((c) => { const mine = n++; c.on("error", () => {}); ' +
  `c.once("data", (d) => c.end(mine + " " + d)) }); ${LISTEN}`

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
  more: Partial<ProxyStart> & { readonly protocol?: 'tcp' | 'http' | 'engine' } = {},
): Promise<ProxiedTask> {
  const { protocol = 'tcp', ...options } = more
  const folder = attemptFolder(world.folder, taskId)
  const ports = await startProxy({
    program: await guardProgram(),
    folder,
    address: '127.0.0.1',
    ports: PORTS,
    next: PORTS.from + Math.floor(Math.random() * BLOCK),
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
      if (counts === null) throw new Error('these are not counts')
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
  const listens = async (): Promise<void> => {
    if (!(await world.output(taskId)).includes('listening')) throw new Error(`${taskId} does not listen`)
  }
  await vi.waitFor(listens, { timeout: WITHIN_MS, interval: 10 })
  return port
}

/** The processes of the proxy whose guard has this folder. */
export function proxiesOf(folder: string): readonly number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => isRunnable(pid) && commandOf(pid).includes(`--proxy\0${folder}\0`))
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
