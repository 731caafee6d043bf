import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { DurationMs } from '../../../protocol/units.ts'
import type { ArenaPlace } from './swap-arena.ts'
import {
  HelperFault,
  type HelperAnswer,
  type HelperNote,
  type HelperRequest,
  type HelperRole,
} from './helper-messages.ts'

/** Maximum requests in flight per helper. */
const MAX_PENDING = 256
/** Concurrent calls of a helper; a hanging call blocks only itself. */
const CALL_THREADS = '16'
/** Maximum characters of a helper's standard error in the log line about its end. */
const MAX_STDERR_CHARS = 500
/**
 * Environment variables that the driver's libraries may need. CUDA_VISIBLE_DEVICES is excluded because it
 * would hide GPUs from the helper.
 */
const INHERITED = ['PATH', 'HOME', 'LD_LIBRARY_PATH', 'TMPDIR', 'NODE_V8_COVERAGE'] as const

// In the same folder as this file, with the same extension (compiled or not).
const HELPER = fileURLToPath(
  new URL(`./driver-calls${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
)

export interface HelperOptions {
  readonly role: HelperRole
  readonly library: string
  readonly ffiModule: string
  /** Path of the proc file system; default /proc. */
  readonly proc?: string
  /** The swap arena of the role `cuda`. */
  readonly arena?: ArenaPlace
  /** Receives one line for the log. */
  readonly onNote: (line: string) => void
}

/**
 * The helper process of one role: started by the first request, and again by the first request after its end.
 * A call that is not answered in time ends the helper with all its calls; the callers determine the outcome
 * of theirs. Two helpers of one role never run at the same time.
 */
export class HelperProcess {
  readonly #options: HelperOptions
  #running: Running | null = null
  #ended: Promise<void> = Promise.resolve()
  #lastId = 0
  #isClosed = false

  constructor(options: HelperOptions) {
    this.#options = options
  }

  /** Pid of the helper while it runs, for tests and log lines. */
  get pid(): number | null {
    return this.#running?.child.pid ?? null
  }

  /** Resolves with the value; rejects with HelperFault, at the latest after `timeoutMs`. */
  request(op: string, args: Omit<HelperRequest, 'id' | 'op'>, timeoutMs: DurationMs): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const id = ++this.#lastId
      const timer = setTimeout(() => {
        reject(
          new HelperFault({
            kind: 'timeout',
            message: `${this.#options.role} helper: ${op} not answered within ${timeoutMs} ms`,
            code: null,
          }),
        )
        this.#end(`${op} was not answered within ${timeoutMs} ms`)
      }, timeoutMs)
      const pending: Pending = {
        resolve: (value) => {
          clearTimeout(timer)
          resolve(value)
        },
        reject: (fault) => {
          clearTimeout(timer)
          reject(fault)
        },
      }
      const request = { id, op, ...args }
      if (this.#running !== null) this.#send(request, pending)
      // The previous helper may still be ending.
      else void this.#ended.then(() => this.#send(request, pending))
    })
  }

  /** Ends the helper and its work. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#end(null)
    await this.#ended
  }

  #send(request: HelperRequest, pending: Pending): void {
    if (this.#isClosed) return pending.reject(lost('it is closed'))
    const running = (this.#running ??= this.#start())
    if (running.pending.size >= MAX_PENDING)
      return pending.reject(lost(`it already has ${MAX_PENDING} requests`))
    running.pending.set(request.id, pending)
    // The end of the child is handled by its exit event.
    running.child.send(request, () => {})
  }

  #start(): Running {
    const { role, library, ffiModule, proc = '/proc', arena, onNote } = this.#options
    const place = arena === undefined ? [] : [JSON.stringify(arena)]
    const child = spawn(process.execPath, [HELPER, role, library, ffiModule, proc, ...place], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      env: environment(),
    })
    const running: Running = { child, pending: new Map(), stderr: '' }
    child.stderr
      ?.setEncoding('utf8')
      .on('data', (text: string) => (running.stderr = (running.stderr + text).slice(-MAX_STDERR_CHARS)))
    child.on('message', (message) => {
      const said = message as HelperAnswer | HelperNote
      if ('note' in said) onNote(said.note)
      else receive(running, said)
    })
    this.#ended = new Promise((resolve) => {
      child.once('error', (error) => {
        this.#forget(running, error.message)
        if (child.pid === undefined) resolve()
      })
      child.once('exit', (code, signal) => {
        this.#forget(
          running,
          'it ended with ' +
            `${signal ?? `exit code ${code}`}${running.stderr === '' ? '' : `: ${oneLine(running.stderr)}`}`,
        )
        resolve()
      })
    })
    return running
  }

  /** Null: ended as requested, without a log line. */
  #end(why: string | null): void {
    const running = this.#running
    if (running === null) return
    running.child.kill('SIGKILL')
    this.#forget(running, why)
  }

  #forget(running: Running, why: string | null): void {
    if (this.#running !== running) return
    this.#running = null
    if (why !== null) this.#options.onNote(`NVIDIA ${this.#options.role} helper: ${why}`)
    for (const pending of running.pending.values()) pending.reject(lost(why ?? 'it was closed'))
    running.pending.clear()
  }
}

interface Running {
  readonly child: ChildProcess
  readonly pending: Map<number, Pending>
  stderr: string
}

interface Pending {
  resolve(value: unknown): void
  reject(fault: HelperFault): void
}

function receive(running: Running, answer: HelperAnswer): void {
  const pending = running.pending.get(answer.id)
  if (pending === undefined) return
  running.pending.delete(answer.id)
  if ('fault' in answer) pending.reject(new HelperFault(answer.fault))
  else pending.resolve(answer.value)
}

function environment(): NodeJS.ProcessEnv {
  const inherited = INHERITED.flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name]] as const],
  )
  return { ...Object.fromEntries(inherited), UV_THREADPOOL_SIZE: CALL_THREADS }
}

function lost(why: string): HelperFault {
  return new HelperFault({ kind: 'lost', message: `the NVIDIA helper did not finish: ${why}`, code: null })
}

function oneLine(text: string): string {
  return text.trim().replaceAll(/\s*\n\s*/g, ' | ')
}
