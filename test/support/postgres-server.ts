/**
 * A real PostgreSQL server on a free port of the loopback interface, with its data in a temporary folder: it
 * can be killed, stopped for a while, and started again on the same port, and have a standby that follows it
 * by streaming replication. It never runs as root.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { readStoreUrl, type StorePlace } from '../../controller/adapters/postgres/store-url.ts'
import { afterEachFile } from './endings.ts'
import { freePort } from './free-port.ts'

const START_WITHIN_MS = 60_000
/** Debian installs the programs in a folder of their version. */
const PATH = [process.env['PATH'], ...[17, 16, 15, 14].map((v) => `/usr/lib/postgresql/${v}/bin`)].join(':')
const ENVIRONMENT = { ...process.env, PATH, TZ: 'UTC' }
/** PostgreSQL refuses to run as root. This user owns nothing. */
export const UNPRIVILEGED = 65_534

const open = new Set<PostgresServer>()
afterEachFile(async () => {
  await Promise.all([...open].map((server) => server.remove()))
})

/** Null when PostgreSQL's programs are installed; otherwise the reason to skip its tests. */
export function whyNoPostgres(): string | null {
  try {
    execFileSync('initdb', ['--version'], { stdio: 'ignore', env: ENVIRONMENT })
    return null
  } catch {
    const why = 'PostgreSQL is not installed: `apt-get install postgresql`'
    process.stderr.write(`skipped: ${why}\n`)
    return why
  }
}

export interface PostgresOptions {
  /** Whether commits wait for the disk (default true). */
  readonly fsync?: boolean
  /** Further lines of postgresql.conf as arguments: `log_connections=on`. */
  readonly settings?: readonly string[]
  /** Folder for the temporary folder of its data (default: that of the system). */
  readonly parent?: string
  /** Of the server, in addition to that of the test. */
  readonly env?: Readonly<Record<string, string>>
}

export class PostgresServer {
  readonly port: number
  readonly folder: string
  readonly #settings: readonly string[]
  #env: Readonly<Record<string, string>> = {}
  #child: ChildProcess | null = null
  #output = ''

  private constructor(port: number, folder: string, settings: readonly string[]) {
    this.port = port
    this.folder = folder
    this.#settings = settings
  }

  static async start(options: PostgresOptions = {}): Promise<PostgresServer> {
    const { fsync = true, settings = [], parent = tmpdir(), env = {} } = options
    const all = [`fsync=${fsync ? 'on' : 'off'}`, ...settings]
    const server = new PostgresServer(await freePort(), newFolder(parent), all)
    server.#env = env
    server.#make('initdb', ['-U', 'headroom', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'])
    await server.restart()
    return server
  }

  /** A standby that streams from it, once it does. @param port default: a free one */
  async standby(port?: number): Promise<PostgresServer> {
    const standby = new PostgresServer(port ?? (await freePort()), newFolder(tmpdir()), this.#settings)
    const from = `host=127.0.0.1 port=${this.port} user=headroom`
    standby.#make('pg_basebackup', ['-d', from, '-X', 'stream', '-c', 'fast', '-R', '--no-sync'])
    await standby.restart()
    await this.#until("select from pg_stat_replication where state = 'streaming'")
    return standby
  }

  /** Commits wait until its standby has them, or no longer. */
  async setSynchronous(isSynchronous: boolean): Promise<void> {
    await this.query(`alter system set synchronous_standby_names = '${isSynchronous ? '*' : ''}'`)
    await this.query('select pg_reload_conf()')
    if (isSynchronous) await this.#until("select from pg_stat_replication where sync_state = 'sync'")
  }

  /** A standby no longer receives what its primary commits. */
  async stopStreaming(): Promise<void> {
    await this.query("alter system set primary_conninfo = ''")
    await this.query('select pg_reload_conf()')
    await this.#until('select where not exists (select from pg_stat_wal_receiver)')
  }

  /** A standby is the primary from now on. */
  async promote(): Promise<void> {
    await this.query('select pg_promote()')
  }

  #make(program: 'initdb' | 'pg_basebackup', how: readonly string[]): void {
    open.add(this)
    execFileSync(program, ['-D', join(this.folder, 'data'), ...how], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: ENVIRONMENT,
      cwd: this.folder,
      ...unprivileged(),
    })
  }

  async #until(query: string): Promise<void> {
    const until = Date.now() + START_WITHIN_MS
    while ((await this.query(query)).length === 0) {
      if (Date.now() > until) throw new Error(`PostgreSQL does not reach: ${query}; ${this.#output}`)
      await delay(20)
    }
  }

  get url(): string {
    return this.urlAt(this.port)
  }

  /** @param port of a proxy in front of it */
  urlAt(port: number): string {
    return `postgres://headroom@127.0.0.1:${port}/postgres`
  }

  get place(): StorePlace {
    return placeOf(this.url)
  }

  /** The process that accepts connections. */
  get postmasterPid(): number {
    return Number(readFileSync(join(this.folder, 'data/postmaster.pid'), 'utf8').split('\n')[0])
  }

  /** The end of its log. */
  get output(): string {
    return this.#output
  }

  async query<T extends object>(text: string, values: readonly unknown[] = []): Promise<readonly T[]> {
    const client = new pg.Client({ connectionString: this.url })
    client.on('error', () => {})
    await client.connect()
    try {
      return (await client.query<T>(text, [...values])).rows
    } finally {
      await client.end()
    }
  }

  /** Removes everything that a store has made. */
  async clear(): Promise<void> {
    await this.query('drop schema if exists headroom cascade')
  }

  /** Starts it on the same port. */
  async restart(): Promise<void> {
    const settings = [
      ...['listen_addresses=127.0.0.1', `port=${this.port}`, 'unix_socket_directories='],
      ...['autovacuum_naptime=10s', 'max_connections=50', ...this.#settings],
    ].flatMap((setting) => ['-c', setting])
    const until = Date.now() + START_WITHIN_MS
    let child = this.#spawn(settings)
    while (!(await this.#answers())) {
      if (Date.now() > until) throw new Error(`PostgreSQL did not start: ${this.#output}`)
      // Processes of a killed postmaster may still be ending.
      if (child.exitCode !== null) child = this.#spawn(settings)
      await delay(50)
    }
  }

  #spawn(settings: readonly string[]): ChildProcess {
    const child = spawn('postgres', ['-D', join(this.folder, 'data'), ...settings], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...ENVIRONMENT, ...this.#env },
      cwd: this.folder,
      ...unprivileged(),
    })
    child.stderr.on('data', (text: Buffer) => {
      this.#output = `${this.#output}${text.toString()}`.slice(-4_000)
    })
    this.#child = child
    return child
  }

  async #answers(): Promise<boolean> {
    return this.query('select 1').then(
      () => true,
      () => false,
    )
  }

  get isRunning(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** SIGQUIT: all sessions end at once, without a checkpoint. SIGKILL: only the postmaster. */
  async stop(signal: 'SIGQUIT' | 'SIGINT' | 'SIGKILL' = 'SIGQUIT'): Promise<void> {
    const child = this.#child
    if (child === null || !this.isRunning) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill(signal)
    await ended
  }

  /** SIGKILL to all of its processes, as when its host is lost. */
  async kill(): Promise<void> {
    const pids = this.#pids()
    const stopped = this.stop('SIGKILL')
    signalled(pids.slice(1), 'SIGKILL')
    await stopped
  }

  /** All of its processes stand still for this long. */
  async freeze(ms: number): Promise<void> {
    const pids = this.#pids()
    signalled(pids, 'SIGSTOP')
    await delay(ms)
    signalled(pids, 'SIGCONT')
  }

  /** All of its processes: the postmaster and its children. */
  #pids(): readonly number[] {
    const postmaster = this.postmasterPid
    const children = execFileSync('ps', ['-o', 'pid=', '--ppid', String(postmaster)], { encoding: 'utf8' })
    return [postmaster, ...children.split(/\s+/).filter(Boolean).map(Number)]
  }

  async remove(): Promise<void> {
    open.delete(this)
    await this.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

function signalled(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids)
    try {
      process.kill(pid, signal)
    } catch {
      // It ended by itself.
    }
}

function newFolder(parent: string): string {
  const folder = mkdtempSync(join(parent, 'headroom-postgres-'))
  if (process.geteuid?.() === 0) chownSync(folder, UNPRIVILEGED, UNPRIVILEGED)
  return folder
}

function placeOf(url: string): StorePlace {
  const place = readStoreUrl(url)
  if (place === undefined) throw new Error(`${url} is no URL of a store`)
  return place
}

function unprivileged(): { readonly uid?: number; readonly gid?: number } {
  return process.geteuid?.() === 0 ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}
}
