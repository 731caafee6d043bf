/**
 * Another Node of ours that runs one module and speaks with this process in messages, as worker-link.ts does
 * there. A process and not a thread, because threads of one process share the helpers of V8, which collect
 * garbage and compile at the priority of the process, and its locks on memory.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { finished } from 'node:stream/promises'

/** It is gone: out of memory, crashed, or ended. */
export class WorkerFault extends Error {
  override readonly name = 'WorkerFault'
}

export interface WorkerLimits {
  /** The heap of JavaScript; else what Node thinks right for the machine. */
  readonly heapMib?: number
}

export interface WorkerListener {
  onMessage(message: unknown): void
  /** Once. */
  onEnd(fault: WorkerFault): void
}

/** Of what it wrote to stderr, so much is kept until it is known how it ended. */
const STDERR_TAIL_CHARACTERS = 16_384
/** One that has nothing to do goes by itself, or is ended after so long. */
const EXIT_GRACE_MS = 2_000

export class WorkerProcess {
  readonly #child: ChildProcess
  readonly #listeners = new Set<WorkerListener>()
  #fault: WorkerFault | null = null
  #isEnded = false
  #stderrTail = ''

  constructor(module: URL, { heapMib }: WorkerLimits = {}) {
    const heap = heapMib === undefined ? [] : [`--max-old-space-size=${heapMib}`]
    this.#child = fork(module, {
      execArgv: ['--import', new URL('../require-node.mjs', import.meta.url).href, ...heap],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderrTail = (this.#stderrTail + text).slice(-STDERR_TAIL_CHARACTERS)
    })
    this.#child.on('message', (message) => {
      for (const { onMessage: heard } of this.#listeners) heard(message)
    })
    // A message that does not reach it is lost with it; `exit` says why.
    this.#child.on('error', (error) => {
      if (this.#child.pid === undefined)
        this.#finish(new WorkerFault(`its process could not be started: ${error.message}`, { cause: error }))
    })
    this.#child.once(
      'exit',
      (code, signal) => void this.#readStderr().then(() => this.#finish(this.#faultOf(code, signal))),
    )
  }

  /** Why it is gone; null: it lives. */
  get fault(): WorkerFault | null {
    return this.#fault
  }

  /** Reaches one that is gone, or is just going, no more. */
  post(message: object): void {
    if (this.#child.connected) this.#child.send(message, () => {})
  }

  /** Of one that is gone the listener is told at once. @returns whoever calls it hears no more */
  listen(listener: WorkerListener): () => void {
    if (this.#fault !== null) listener.onEnd(this.#fault)
    else this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** At once, in the middle of whatever it does. */
  async end(): Promise<void> {
    this.#isEnded = true
    this.#child.kill('SIGKILL')
    await this.#gone()
  }

  /** One that has nothing to do any more. */
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

/** V8 says so and aborts. */
function isOutOfMemory(said: string): boolean {
  return said.includes('heap out of memory')
}
