/**
 * Tells when a request waits for a task: `headroom-guard --sockets` looks at the sockets of stopped tasks
 * every 100 ms, and at those of running tasks when asked (sockets.c describes the lines). The process starts
 * with the first task and is replaced when it ends.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { DurationMs } from '../../protocol/units.ts'

/** The task as the watch needs it. The same object from launch to end. */
export interface WatchedTask {
  readonly start: {
    readonly wakePorts?: readonly number[]
    readonly wakeOnRequest?: boolean
    readonly isLease: boolean
  }
  processIds(): readonly number[]
}

export interface SocketWatchOptions<T extends WatchedTask> {
  /** The guard program. */
  readonly program: string
  /** A request waits for this stopped task; once for each `watch`. */
  readonly onRequest: (task: T) => void
  /** Receives one line for the log. */
  readonly onNote: (line: string) => void
}

/** Time limit after which a task counts as without a request, so a swap never waits for the process. */
const ANSWER_LIMIT_MS: DurationMs = 2_000
const RESTART_AFTER_MS: DurationMs = 1_000

export class SocketWatch<T extends WatchedTask> {
  readonly #options: SocketWatchOptions<T>
  /** Numbers that stand for tasks in the lines. */
  readonly #keys = new WeakMap<T, number>()
  readonly #watched = new Map<number, T>()
  /** Questions without an answer, by what the answer begins with. */
  readonly #waiting = new Map<string, (answer: number) => void>()
  #lastKey = 0
  #process: ChildProcess | null = null
  #restart: NodeJS.Timeout | null = null
  #fullQueues = 0
  #isClosed = false

  constructor(options: SocketWatchOptions<T>) {
    this.#options = options
  }

  /** Listening sockets of stopped tasks that have no room for another connection. */
  get fullQueues(): number {
    return this.#fullQueues
  }

  /**
   * The task is stopped: from now on its requests are reported. Resolves with true if it can be woken that
   * way and has declared so; then nothing else needs to bring it back.
   */
  async watch(task: T): Promise<boolean> {
    if (!isWatchable(task)) return false
    const key = this.#keyOf(task)
    this.#watched.set(key, task)
    const listening = await this.#ask('watch', 'watching', key, task)
    const { wakePorts = [], wakeOnRequest } = task.start
    return listening > 0 && (wakePorts.length > 0 || wakeOnRequest === true)
  }

  /** The task runs again, or has ended. */
  forget(task: T): void {
    const key = this.#keys.get(task)
    this.#keys.delete(task)
    if (key === undefined || !this.#watched.delete(key)) return
    this.#say(`forget ${key}`)
    if (this.#watched.size === 0) this.#fullQueues = 0
  }

  /** Returns true if a request waits for this running task now. */
  async hasRequest(task: T): Promise<boolean> {
    if (!isWatchable(task)) return false
    return (await this.#ask('look', 'looked', this.#keyOf(task), task)) > 0
  }

  close(): void {
    this.#isClosed = true
    if (this.#restart !== null) clearTimeout(this.#restart)
    this.#process?.stdin?.end()
    this.#settleAll()
  }

  #keyOf(task: T): number {
    let key = this.#keys.get(task)
    if (key === undefined) this.#keys.set(task, (key = ++this.#lastKey))
    return key
  }

  #ask(verb: string, answer: string, key: number, task: T): Promise<number> {
    const pids = task.processIds()
    if (pids.length === 0 || this.#isClosed) return Promise.resolve(0)
    const ports = task.start.wakePorts?.join(',') ?? '*'
    return new Promise((resolve) => {
      const name = `${answer} ${key}`
      const settle = (value: number): void => {
        clearTimeout(timer)
        if (this.#waiting.get(name) === settle) this.#waiting.delete(name)
        resolve(value)
      }
      const timer = setTimeout(() => settle(0), ANSWER_LIMIT_MS)
      timer.unref()
      this.#waiting.get(name)?.(0)
      this.#waiting.set(name, settle)
      this.#say(`${verb} ${key} ${ports} ${pids.join(',')}`)
    })
  }

  #say(line: string): void {
    if (this.#isClosed || this.#restart !== null) return
    this.#process ??= this.#start()
    this.#process.stdin?.write(`${line}\n`)
  }

  #start(): ChildProcess {
    const child = spawn(this.#options.program, ['--sockets'], {
      env: {},
      cwd: '/',
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    child.unref()
    child.stdin.on('error', () => undefined) // `close` follows
    child.once('error', (error) => this.#ended(child, error.message))
    child.once('close', (code, signal) => this.#ended(child, signal ?? `exit code ${code}`))
    createInterface(child.stdout).on('line', (line) => this.#hear(line))
    return child
  }

  #hear(line: string): void {
    const [verb = '', first = '', second = '0'] = line.split(' ')
    if (verb === 'full') this.#fullQueues = Number(first)
    else if (verb === 'wanted') {
      const task = this.#watched.get(Number(first))
      if (task !== undefined) this.#options.onRequest(task)
    } else this.#waiting.get(`${verb} ${first}`)?.(Number(second))
  }

  /** Requests that arrive meanwhile wait; the next process finds them. */
  #ended(child: ChildProcess, why: string): void {
    if (this.#process !== child) return
    this.#process = null
    this.#fullQueues = 0
    this.#settleAll()
    if (this.#isClosed) return
    this.#options.onNote(`the process that watches sockets ended (${why}); it is started again`)
    this.#restart = setTimeout(() => {
      this.#restart = null
      for (const [key, task] of this.#watched) void this.#ask('watch', 'watching', key, task)
    }, RESTART_AFTER_MS)
    this.#restart.unref()
  }

  #settleAll(): void {
    for (const settle of [...this.#waiting.values()]) settle(0)
  }
}

function isWatchable({ start }: WatchedTask): boolean {
  return start.wakeOnRequest !== false && !start.isLease
}
