/** `headroom lease`: a place on a GPU that lasts as long as this process, or the command it runs. */
import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError, type HeadroomClient, type Task } from '../../clients/typescript/client.ts'
import { CommandFailure, EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { openClient } from '../command/session.ts'
import { taskLabel } from '../command/task-label.ts'
import { visible } from '../output/terminal-text.ts'
import { codeOfSignal, onInterrupt } from '../command/interrupts.ts'
import { retryWhileUnreachable } from './retry.ts'
import { StatusLine } from '../output/status-line.ts'
import { demandOf, type DemandOptions } from './task-request.ts'

export interface LeaseOptions extends DemandOptions {
  readonly idle?: boolean
}

/** While it waits for its place; a person reads the output. */
const POLL_INTERVAL_MS = 500
/**
 * A lease lasts a minute unless the controller says otherwise; renewing at a third of it tolerates two
 * failures.
 */
const KEEPALIVE_MS = 15_000
const MIN_KEEPALIVE_MS = 500
const SUBMIT_ATTEMPTS = 3

export async function holdLease(command: readonly string[], options: LeaseOptions): Promise<number> {
  const client = openClient(options, { attempts: SUBMIT_ATTEMPTS })
  const interrupted = new AbortController()
  const interrupts = onInterrupt(() => interrupted.abort())
  const line = new StatusLine()
  let id: string | null = null
  try {
    id = (await client.tasks.submit(demandOf(options))).id
    const placedOrNull = await held(
      new Lease(client, id, options.idle !== true, line),
      interrupted.signal,
      async (placed, over) => {
        line.clear()
        process.stdout.write(`${visible(assignmentLine(placed))}\n`)
        if (command.length > 0) return runHere(command, placed, interrupted.signal, over)
        await aborted(interrupted.signal)
        return EXIT_OK
      },
    )
    return placedOrNull ?? interrupts.exitCode ?? EXIT_OK
  } finally {
    line.clear()
    interrupts.end()
    if (id !== null) await giveBack(client, id)
  }
}

/**
 * Returns the result of `use`, while the lease is kept alive; null when a signal came before it had its
 * place. Throws when the lease ends too early.
 */
async function held(
  lease: Lease,
  interrupted: AbortSignal,
  use: (placed: Task, over: AbortSignal) => Promise<number>,
): Promise<number | null> {
  const over = new AbortController()
  const kept = lease.keep(over.signal)
  try {
    const placed = await Promise.race([lease.untilPlaced(interrupted), kept])
    return placed === null ? null : await Promise.race([use(placed, over.signal), kept])
  } finally {
    over.abort()
    await kept.catch(() => {})
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    // A timer keeps the process alive meanwhile.
    const timer = setInterval(() => {}, KEEPALIVE_MS)
    const done = (): void => {
      clearInterval(timer)
      resolve()
    }
    if (signal.aborted) done()
    else signal.addEventListener('abort', done, { once: true })
  })
}

class Lease {
  readonly #client: HeadroomClient
  readonly #id: string
  readonly #isBusy: boolean
  readonly #line: StatusLine

  constructor(client: HeadroomClient, id: string, isBusy: boolean, line: StatusLine) {
    this.#client = client
    this.#id = id
    this.#isBusy = isBusy
    this.#line = line
  }

  /**
   * Sends keepalives until the signal, then resolves with null. Throws when the controller says that the
   * lease is over.
   */
  async keep(signal: AbortSignal): Promise<null> {
    while (!signal.aborted) {
      const away = (error: Error): void =>
        this.#line.print(`${error.message}; the lease ends unless the controller responds again`)
      const kept = await retryWhileUnreachable(
        () => this.#client.tasks.keepalive(this.#id, { busy: this.#isBusy }, { signal }),
        away,
        signal,
      ).catch((error: unknown) => {
        if (signal.aborted) return null
        throw error instanceof ApiError ? new CommandFailure(`the lease has ended: ${error.message}`) : error
      })
      if (kept === null) break
      const leftMs = kept.expires_at === null ? Infinity : Date.parse(kept.expires_at) - Date.parse(kept.at)
      await sleep(Math.max(MIN_KEEPALIVE_MS, Math.min(KEEPALIVE_MS, leftMs / 3)), undefined, {
        signal,
      }).catch(() => {})
    }
    return null
  }

  /** Resolves with the task once it is in VRAM; null when the signal came first. */
  async untilPlaced(signal: AbortSignal): Promise<Task | null> {
    while (!signal.aborted) {
      const ask = () => this.#client.tasks.get(this.#id, { signal })
      const task = await retryWhileUnreachable(ask, () => {}, signal).catch((error: unknown) => {
        if (signal.aborted) return null
        throw error
      })
      if (task === null) break
      if (task.state === 'running' && task.residency === 'resident') return task
      if (task.finished_at !== null) {
        throw new CommandFailure(
          `the lease ended as ${task.state}${task.end_reason === null ? '' : `: ${task.end_reason}`}`,
        )
      }
      this.#line.show(`lease ${taskLabel(task)}: ${task.wait?.sentence ?? task.state}`)
      await sleep(POLL_INTERVAL_MS, undefined, { signal }).catch(() => {})
    }
    return null
  }
}

function assignmentLine(task: Task): string {
  const { placement } = task
  return (
    `${task.id}  ${placement?.node_name ?? '-'}  ${placement?.node_id ?? '-'}  GPU ` +
    `${placement?.gpus.join(',') ?? '-'}`
  )
}

/**
 * Returns its exit code, or 128 + signal. A signal to this process is passed to the command; on a terminal
 * Ctrl-C has reached it already.
 */
function runHere(
  command: readonly string[],
  { id, placement }: Task,
  interrupted: AbortSignal,
  over: AbortSignal,
): Promise<number> {
  const [file = '', ...args] = command
  const env = {
    ...process.env,
    HEADROOM_TASK_ID: id,
    HEADROOM_NODE: placement?.node_name ?? '',
    HEADROOM_GPUS: placement?.gpus.join(',') ?? '',
  }
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: 'inherit', env })
    const stop = (): void => void child.kill('SIGTERM')
    if (!process.stdin.isTTY) interrupted.addEventListener('abort', stop, { once: true })
    over.addEventListener('abort', stop, { once: true })
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        new UsageError(`${file}: ${error.code === 'ENOENT' ? 'command not found' : error.message}`, {
          cause: error,
        }),
      ),
    )
    child.once('exit', (code, killedBy) => resolve(code ?? codeOfSignal(killedBy ?? '') ?? 1))
  })
}

/** A lease that is not released ends by itself when its time is over. */
async function giveBack(client: HeadroomClient, id: string): Promise<void> {
  await client.tasks.cancel(id).catch(() => {})
}
