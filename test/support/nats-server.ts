/**
 * A real nats-server on a free port of the loopback interface: it can be started, killed, stopped for a
 * while, and restarted on the same port.
 */
import { execFileSync, spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEachFile } from './endings.ts'
import { freePort } from './free-port.ts'

const START_WITHIN_MS = 60_000
const END_WITHIN_MS = 30_000

/** Debian installs it in a folder that is only in the PATH of root. */
const ENVIRONMENT = { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` }

/** A test that fails half-way leaves no broker behind. */
const running = new Set<ChildProcess>()
const folders = new Set<string>()
afterEachFile(() => {
  running.forEach((child) => child.kill('SIGKILL'))
  running.clear()
  folders.forEach((folder) => rmSync(folder, { recursive: true, force: true }))
  folders.clear()
})

/**
 * Null when nats-server is installed; otherwise the reason to skip its tests. Throws in continuous
 * integration, where they are never skipped.
 */
export function whyNoNatsServer(): string | null {
  try {
    execFileSync('nats-server', ['--version'], { stdio: 'ignore', env: ENVIRONMENT })
    return null
  } catch {
    const why =
      'nats-server is not installed: `apt-get install nats-server`, or see ' +
      'https://github.com/nats-io/nats-server/releases'
    if (process.env['CI']) throw new Error(why)
    process.stderr.write(`skipped: ${why}\n`)
    return why
  }
}

export interface NatsServer {
  readonly port: number
  readonly url: string
  /** The folder of its configuration; other files of a test may be there too. */
  readonly folder: string
  /** Process id, for commands that reload the broker; null: it does not run. */
  pid(): number | null
  /** Kills the broker without closing its connections. */
  kill(): Promise<void>
  /** Starts it on the same port, with this configuration if one is given. */
  restart(config?: string): Promise<void>
  /** Reloads it with this configuration. */
  reload(config: string): Promise<void>
  /** Stops its process, which keeps its connections, before this resolves. */
  freeze(): Promise<void>
  thaw(): void
  /** Its log. */
  log(): string
}

/** `config`: text in nats-server's language, without `listen`. */
export async function startNatsServer(config = '', port?: number): Promise<NatsServer> {
  const listenPort = port ?? (await freePort())
  const folder = newFolder()
  let child: ChildProcess | null = null
  let logged = ''
  let text = config
  const file = join(folder, 'nats.conf')
  const write = (): void => writeFileSync(file, `listen: "127.0.0.1:${listenPort}"\n${text}\n`)
  const start = async (): Promise<void> => {
    write()
    const started = spawn('nats-server', ['-c', file], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: ENVIRONMENT,
    })
    child = started
    running.add(started)
    started.once('exit', () => running.delete(started))
    started.stderr.on('data', (chunk: Buffer) => (logged += chunk.toString()))
    await listening(listenPort, started, () => logged)
  }
  await start()
  return {
    port: listenPort,
    url: `nats://127.0.0.1:${listenPort}`,
    folder,
    pid: () => child?.pid ?? null,
    kill: () => end(child),
    async restart(changed = text) {
      await end(child)
      text = changed
      await start()
    },
    async reload(changed) {
      text = changed
      write()
      const from = logged.length
      child?.kill('SIGHUP')
      const deadline = performance.now() + START_WITHIN_MS
      while (!logged.includes('Reloaded server configuration', from)) {
        if (performance.now() > deadline)
          throw new Error(`nats-server does not take in its configuration: ${logged.slice(from)}`)
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    },
    freeze: () => freeze(child),
    thaw: () => void child?.kill('SIGCONT'),
    log: () => logged,
  }
}

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'headroom-nats-'))
  folders.add(folder)
  return folder
}

function end(child: ChildProcess | null): Promise<void> {
  if (child === null || child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('nats-server does not end')), END_WITHIN_MS)
    child.once('exit', () => {
      clearTimeout(timer)
      resolve()
    })
    child.kill('SIGKILL')
  })
}

/** A signal to many threads needs time. */
async function freeze(child: ChildProcess | null): Promise<void> {
  if (child?.pid === undefined) return
  child.kill('SIGSTOP')
  const threads = `/proc/${child.pid}/task`
  while (!readdirSync(threads).every((thread) => isStopped(`${threads}/${thread}/stat`))) {
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

/** The state follows the name, which is in parentheses. */
function isStopped(statFile: string): boolean {
  return readFileSync(statFile, 'utf8').split(') ')[1]?.startsWith('T') ?? false
}

/** Resolves when it accepts connections. */
async function listening(port: number, child: ChildProcess, log: () => string): Promise<void> {
  const deadline = performance.now() + START_WITHIN_MS
  while (!(await greets(port))) {
    if (child.exitCode !== null || performance.now() > deadline)
      throw new Error(`nats-server did not start: ${log()}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
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
