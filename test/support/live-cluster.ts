/**
 * A complete cluster of real processes on the loopback interface: broker, controller over SQLite, and
 * servers, simulated or real. Each can be killed, stopped and restarted. Does not depend on the test runner:
 * the caller calls `end`.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { taskIdentity } from './task-identity.ts'
import { FROM_SOURCES_ENV, UNMEASURED } from './headroom-command.ts'

const ROOT = join(import.meta.dirname, '../..')
const START_WITHIN_MS = 100_000
const END_WITHIN_MS = 15_000
/** Each look is a request that costs both processes CPU time. */
const LOOK_EVERY_MS = 200
/** Characters of a member's output in an error. */
const OUTPUT_SHOWN = 4_000

export type Environment = Readonly<Record<string, string>>

/** One process that may be started repeatedly with the same name, command and environment. */
export class Member {
  readonly name: string
  readonly #command: readonly string[]
  readonly #env: Environment
  #child: ChildProcess | null = null
  /** Output of all its runs, stdout and stderr in order of arrival. */
  output = ''
  starts = 0

  constructor(name: string, command: readonly string[], env: Environment) {
    this.name = name
    this.#command = command
    this.#env = env
  }

  get pid(): number {
    const pid = this.#child?.pid
    if (pid === undefined) throw new Error(`${this.name} does not run`)
    return pid
  }

  get isRunning(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /**
   * Resolves once `isUp` returns true; rejects with its output if it ends before. @param more arguments of
   * this run only
   */
  async start(isUp: () => Promise<boolean> | boolean, more: readonly string[] = []): Promise<void> {
    const [file = '', ...args] = [...this.#command, ...more]
    const child = spawn(file, args, {
      cwd: ROOT,
      env: { ...process.env, ...UNMEASURED, ...this.#env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    this.starts += 1
    const read = (chunk: Buffer): void => {
      this.output += chunk.toString()
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    const running = async (): Promise<boolean> => {
      if (!this.isRunning)
        throw new Error(`${this.name} ended with ${child.exitCode ?? child.signalCode}: ${this.output}`)
      return await isUp()
    }
    await until(`${this.name} is up`, running).catch((fault: unknown) => {
      throw new Error(`${String(fault)}; its output: ${this.output.slice(-OUTPUT_SHOWN)}`)
    })
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal)
  }

  /** Resolves when it has ended. */
  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child
    if (child === null || !this.isRunning) return
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    const timer = setTimeout(() => child.kill('SIGKILL'), END_WITHIN_MS)
    await gone
    clearTimeout(timer)
  }
}

export interface NodeStatus {
  readonly name: string
  readonly status: string
}

export class LiveCluster {
  readonly folder = mkdtempSync(join(tmpdir(), 'headroom-live-'))
  readonly #members: Member[] = []
  readonly #root: string
  #natsPort = 0
  /** Of a controller. */
  url: string
  broker: Member
  controller: Member
  /** Sent with requests; null: the controller is open. */
  token: string | null = null

  private constructor(
    ports: readonly [nats: number, http: number],
    controllerEnv: Environment,
    root: string,
  ) {
    const [natsPort, httpPort] = ports
    this.#root = root
    this.#natsPort = natsPort
    this.url = `http://127.0.0.1:${httpPort}`
    // Tasks write to it, each as a separate user.
    chmodSync(this.folder, 0o777)
    this.broker = this.#member(
      'nats-server',
      ['nats-server', '-a', '127.0.0.1', '-p', String(this.#natsPort)],
      {},
    )
    const env = {
      CONTROLLER_HTTP_HOST: '127.0.0.1',
      CONTROLLER_HTTP_PORT: String(httpPort),
      CONTROLLER_DATA_DIR: this.path('controller'),
    }
    this.controller = this.#member('controller', headroomIn(root, 'serve'), {
      ...env,
      ...FROM_SOURCES_ENV,
      CONTROLLER_NATS_URL: this.natsUrl,
      // Simulated servers join some of these clusters.
      CONTROLLER_STORE_KIND: 'trial',
      LOG_LEVEL: 'warn',
      ...controllerEnv,
    })
  }

  /** Also with a token, which every request then needs. */
  static async startClosed(controllerEnv: Environment = {}): Promise<LiveCluster> {
    const folder = mkdtempSync(join(tmpdir(), 'headroom-token-'))
    const file = join(folder, 'admin.token')
    const token = randomBytes(24).toString('hex')
    writeFileSync(file, token, { mode: 0o600 })
    const cluster = await LiveCluster.start({ ...controllerEnv, CONTROLLER_ADMIN_TOKEN_FILE: file })
    cluster.token = token
    return cluster
  }

  /** Only the broker runs. The caller starts controllers, and sets `url`. */
  static async startBrokerAlone(): Promise<LiveCluster> {
    const cluster = new LiveCluster([await freePort(), 0], {}, ROOT)
    await cluster.startBroker()
    return cluster
  }

  /** Broker and controller run and are connected. @param root folder of the sources of its programs */
  static async start(controllerEnv: Environment = {}, root = ROOT): Promise<LiveCluster> {
    const cluster = new LiveCluster([await freePort(), await freePort()], controllerEnv, root)
    try {
      await cluster.startBroker()
      await cluster.startController()
    } catch (error) {
      await cluster.end()
      throw error
    }
    return cluster
  }

  get natsUrl(): string {
    return `nats://127.0.0.1:${this.#natsPort}`
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  startBroker(): Promise<void> {
    return this.broker.start(() => greets(this.#natsPort))
  }

  /** Ready: store and broker are available. */
  startController(...options: readonly string[]): Promise<void> {
    return this.controller.start(() => this.isReady(), options)
  }

  async isReady(): Promise<boolean> {
    try {
      return (await fetch(`${this.url}/readyz`)).ok
    } catch {
      return false
    }
  }

  /** Simulated servers of a scenario, in one process. */
  async startFleet(scenario: string, ...options: readonly string[]): Promise<Member> {
    // Each has its own file, because it is read again at every start.
    const file = this.path(`fleet-${this.#members.length}.scenario.yaml`)
    writeFileSync(file, scenario)
    const fleet = this.#member(
      'simulated fleet',
      [...headroom('sim', 'serve', file, '--nats', this.natsUrl), ...options],
      {},
    )
    await fleet.start(() => fleet.output.includes('connected'))
    return fleet
  }

  /** A server of real processes and declared GPUs. */
  async startServer(
    name: string,
    inventory: string,
    env: Environment = {},
    ...options: readonly string[]
  ): Promise<Member> {
    const file = this.path(`${name}.inventory.yaml`)
    writeFileSync(file, inventory)
    return this.#startServer(name, env, ['--device', 'process', '--inventory', file, ...options])
  }

  /** A server of this host's NVIDIA GPUs. */
  startNvidiaServer(name: string, ...options: readonly string[]): Promise<Member> {
    return this.#startServer(name, {}, ['--device', 'nvidia', ...options])
  }

  async #startServer(name: string, env: Environment, options: readonly string[]): Promise<Member> {
    const state = this.path(name)
    mkdirSync(state, { recursive: true })
    const identity = {
      CONTROLLER_NATS_URL: this.natsUrl,
      NODE_NAME: name,
      NODE_ADDRESS: '127.0.0.1',
      NODE_STATE_DIR: state,
    }
    const own = options.includes('--task-uids') ? [] : taskIdentity()
    const command = headroomIn(this.#root, 'gpu-server', '--allow-exec', ...own, ...options)
    const server = this.#member(name, command, { ...identity, LOG_LEVEL: 'info', ...env })
    await server.start(async () =>
      // A controller that has just lost the lead answers nothing.
      (await this.nodes().catch(() => [])).some((node) => node.name === name && node.status === 'up'),
    )
    return server
  }

  /** Returns all of them: a page is limited by bytes. */
  async nodes(): Promise<readonly NodeStatus[]> {
    const nodes: NodeStatus[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: { readonly items: readonly NodeStatus[]; readonly next_cursor: string | null } =
        await this.get(`/nodes?limit=1000${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`)
      nodes.push(...page.items)
      cursor = page.next_cursor
    }
    return nodes
  }

  async get<T>(path: string): Promise<T> {
    const answer = await fetch(`${this.url}/api/v1${path}`, { headers: this.#authorization })
    if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as T
  }

  async send<T>(method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<T> {
    const answer = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: {
        ...this.#authorization,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
    return (answer.status === 204 ? null : await answer.json()) as T
  }

  get #authorization(): Readonly<Record<string, string>> {
    return this.token === null ? {} : { Authorization: `Bearer ${this.token}` }
  }

  get members(): readonly Member[] {
    return this.#members
  }

  /** A process of this cluster: it ends with it. */
  addMember(name: string, command: readonly string[], env: Environment): Member {
    return this.#member(name, command, env)
  }

  /** Ends all processes, including tasks under their guards, and removes the folder. */
  async end(): Promise<void> {
    await Promise.all(this.#members.toReversed().map((member) => member.end()))
    await until('the guards of this cluster are gone', () => {
      const guards = processesNaming(`${this.folder}/`)
      for (const pid of guards) killed(pid)
      return guards.length === 0
    })
    rmSync(this.folder, { recursive: true, force: true })
  }

  #member(name: string, command: readonly string[], env: Environment): Member {
    const member = new Member(name, command, env)
    this.#members.push(member)
    return member
  }
}

/** Processes whose command line contains the text, except this one. */
export function processesNaming(text: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text)
      } catch {
        return false
      }
    })
}

export function killed(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has already ended.
  }
}

/** Waits for a condition; rejects if it does not occur or `look` throws. */
export async function until(
  what: string,
  look: () => Promise<boolean> | boolean,
  withinMs = START_WITHIN_MS,
): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!(await look())) {
    if (performance.now() > deadline) throw new Error(`not within ${withinMs / 1000} s: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
}

export function headroom(...args: readonly string[]): readonly string[] {
  return headroomIn(ROOT, ...args)
}

/** @param root folder of the sources */
export function headroomIn(root: string, ...args: readonly string[]): readonly string[] {
  return [
    process.execPath,
    '--import',
    join(root, 'cli/require-node.mjs'),
    join(root, 'cli/main.ts'),
    ...args,
  ]
}

function greets(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1')
    const settle = (isUp: boolean): void => {
      socket.destroy()
      resolve(isUp)
    }
    socket.once('data', () => settle(true))
    socket.once('error', () => settle(false))
    socket.once('close', () => settle(false))
  })
}
