/**
 * A Node process of ours that runs one module and exchanges messages with this process; worker-link.ts is its
 * other side. A process instead of a thread, because threads of one process share V8's helper threads, which
 * collect garbage and compile at the priority of the process, and its locks on memory.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { finished } from 'node:stream/promises'

/** The process is gone: out of memory, crashed, or ended. */
export class WorkerFault extends Error {
  override readonly name = 'WorkerFault'
}

export interface WorkerLimits {
  /** JavaScript heap; default: Node's choice for the machine. */
  readonly heapMib?: number
}

export interface WorkerListener {
  onMessage(message: unknown): void
  /** Called once. */
  onEnd(fault: WorkerFault): void
}

/** Characters of its stderr kept until the cause of its end is known. */
const STDERR_TAIL_CHARACTERS = 16_384
/** Time for an idle process to end by itself before it is killed. */
const EXIT_GRACE_MS = 2_000
/** Unit of the times in /proc, on every machine. */
const MS_PER_TICK = 10

export class WorkerProcess {
  readonly #child: ChildProcess
  readonly #listeners = new Set<WorkerListener>()
  #fault: WorkerFault | null = null
  #isEnded = false
  #stderrTail = ''

  constructor(module: URL, { heapMib }: WorkerLimits = {}) {
    const heap = heapMib === undefined ? [] : [`--max-old-space-size=${heapMib}`]
    this.#child = fork(module, {
      execArgv: ['--import', new URL('../../cli/require-node.mjs', import.meta.url).href, ...heap],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderrTail = (this.#stderrTail + text).slice(-STDERR_TAIL_CHARACTERS)
    })
    this.#child.on('message', (message) => {
      for (const { onMessage: heard } of this.#listeners) heard(message)
    })
    // A message that does not arrive is lost with the process; `exit` reports the cause.
    this.#child.on('error', (error) => {
      if (this.#child.pid === undefined)
        this.#finish(new WorkerFault(`cannot start its process: ${error.message}`, { cause: error }))
    })
    this.#child.once(
      'exit',
      (code, signal) => void this.#readStderr().then(() => this.#finish(this.#faultOf(code, signal))),
    )
  }

  /** Why it is gone; null: it is alive. */
  get fault(): WorkerFault | null {
    return this.#fault
  }

  /** CPU time of its main thread; 0 once it is gone. Other systems than Linux: time by the clock. */
  get cpuMs(): number {
    return process.platform === 'linux' ? cpuMsOf(this.#child.pid) : performance.now()
  }

  /** Does not reach a process that is ending or gone. */
  post(message: object): void {
    if (this.#child.connected) this.#child.send(message, () => {})
  }

  /**
   * The listener of a process that is gone is called at once.
   * @returns a function that removes the listener
   */
  listen(listener: WorkerListener): () => void {
    if (this.#fault !== null) listener.onEnd(this.#fault)
    else this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Ends it at once, during its work. */
  async end(): Promise<void> {
    this.#isEnded = true
    this.#child.kill('SIGKILL')
    await this.#gone()
  }

  /** Ends an idle process. */
  async stop(): Promise<void> {
    this.#isEnded = true
    if (this.#child.connected) this.#child.disconnect()
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), EXIT_GRACE_MS)
    await this.#gone()
    clearTimeout(timer)
  }

  #gone(): Promise<void> {
    return new Promise((resolve) => void this.listen({ onMessage: () => {}, onEnd: () => resolve() }))
  }

  async #readStderr(): Promise<void> {
    const { stderr } = this.#child
    if (stderr !== null) await finished(stderr).catch(() => {})
  }

  #finish(fault: WorkerFault): void {
    if (this.#fault !== null) return
    this.#fault = fault
    const listeners = [...this.#listeners]
    this.#listeners.clear()
    for (const { onEnd: over } of listeners) over(fault)
  }

  #faultOf(code: number | null, signal: NodeJS.Signals | null): WorkerFault {
    if (this.#isEnded) return new WorkerFault('its process was ended')
    if (isOutOfMemory(this.#stderrTail))
      return new WorkerFault('it needed more memory than a simulation may have')
    process.stderr.write(this.#stderrTail)
    return new WorkerFault(`its process ended with ${signal ?? `code ${code}`}`)
  }
}

/** proc_pid_stat(5): utime and stime are the 12th and 13th field after the name, which may hold anything. */
function cpuMsOf(pid: number | undefined): number {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/stat`, 'latin1')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * MS_PER_TICK
  } catch {
    return 0
  }
}

/** V8 reports this and aborts. */
function isOutOfMemory(said: string): boolean {
  return said.includes('heap out of memory')
}
