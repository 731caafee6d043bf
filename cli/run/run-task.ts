/** `headroom run`: submits, follows, passes the exit code on. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { WaitReason } from '../../controller/scheduler/explain.ts'
import { ApiError, type HeadroomClient, type Task } from '../client/client.ts'
import { drained } from '../drained.ts'
import { EXIT_OK } from '../exit-codes.ts'
import { openClient } from '../operator/session.ts'
import { exitCodeOfTask } from './exit-status.ts'
import { onInterrupt, type Interrupts } from './interrupts.ts'
import { retryWhileUnreachable } from './retry.ts'
import { StatusLine } from './status-line.ts'
import { commandWithEnv, demandOf, type DemandOptions } from './task-request.ts'
import { printDryRun } from './dry-run.ts'
import { noticeStdin } from './unsent-stdin.ts'

export interface RunOptions extends DemandOptions {
  readonly env: readonly string[]
  readonly maxRuntime?: number
  readonly stopGrace?: number
  readonly onNodeLoss?: 'wait' | 'fail' | 'requeue'
  readonly maxRequeues?: number | null
  readonly detach?: boolean
  readonly dryRun?: boolean
}

/** Reasons that pass only when the cluster or the task is changed: time alone does not end such a wait. */
const NO_END_IN_SIGHT: ReadonlySet<string> = new Set([
  'HELD',
  'GROUP_NOT_FOUND',
  'GROUP_EMPTY',
  'NEVER_FITS',
  'EXCEEDS_NODE_GPU_COUNT',
  'NO_NODES',
  'EXEC_NOT_ALLOWED',
] satisfies WaitReason[])

/** It is tried again in minutes or hours, and mostly for the same end: a program that is not there. */
const REFUSED: WaitReason = 'START_REFUSED'

/** A task that waits is looked at this often, one that runs as often as its end should be seen. */
const POLL_INTERVAL_MS = 500
/** Only what certainly was not taken is submitted again. */
const SUBMIT_ATTEMPTS = 3
/** 128 + SIGPIPE: nobody reads what it writes. */
const EXIT_BROKEN_PIPE = 141

export async function runTask(command: readonly string[], options: RunOptions): Promise<number> {
  const request = {
    ...demandOf(options),
    command: commandWithEnv(command, options.env),
    ...(options.maxRuntime === undefined ? {} : { max_runtime_seconds: options.maxRuntime }),
    ...(options.stopGrace === undefined ? {} : { stop_grace_seconds: options.stopGrace }),
    ...(options.onNodeLoss === undefined ? {} : { on_node_loss: options.onNodeLoss }),
    ...(options.maxRequeues === undefined ? {} : { max_requeues: options.maxRequeues }),
  }
  const client = openClient(options, { attempts: SUBMIT_ATTEMPTS })
  if (options.dryRun === true) return printDryRun(client, request)
  if (options.detach === true) {
    process.stdout.write(`${(await client.tasks.submit(request)).id}\n`)
    return EXIT_OK
  }
  const run = new Run(client)
  return run.toItsEnd(() => client.tasks.submit(request))
}

class Run {
  readonly #client: HeadroomClient
  readonly #line = new StatusLine()
  #task: Task | null = null
  #isCancelled = false
  #isHurried = false
  #isUnreachable = false
  #isPipeBroken = false
  /** The reason to wait that was said last. */
  #printedReason: string | null = null

  constructor(client: HeadroomClient) {
    this.#client = client
  }

  async toItsEnd(submit: () => Promise<Task>): Promise<number> {
    const interrupts = onInterrupt(
      () => {
        this.#line.print('cancelling the task; Ctrl-C again ends it at once')
        this.#isCancelled = true
        void this.#cancel()
      },
      () => {
        this.#line.print('ending the task at once; Ctrl-C again leaves it alone')
        this.#isHurried = true
        void this.#cancel()
      },
    )
    const onBrokenPipe = (): void => {
      this.#isPipeBroken = true
      if (!this.#isCancelled) void this.#cancel()
      this.#isCancelled = true
    }
    const stdin = noticeStdin(() => this.#line.print('stdin is not passed on to the task: it reads nothing'))
    process.stdout.on('error', onBrokenPipe)
    process.stderr.on('error', onBrokenPipe)
    try {
      this.#task = await submit()
      if (this.#isCancelled) await this.#cancel()
      return this.#codeOf(await this.#follow(this.#task), interrupts)
    } finally {
      this.#line.clear()
      stdin.end()
      interrupts.end()
    }
  }

  #codeOf(task: Task, interrupts: Interrupts): number {
    if (this.#isPipeBroken) return EXIT_BROKEN_PIPE
    if (task.state === 'cancelled' && interrupts.exitCode !== null) return interrupts.exitCode
    if (
      task.state === 'cancelled' ||
      task.state === 'lost' ||
      (task.state === 'failed' && task.exit_code === null)
    ) {
      this.#line.print(`the task is ${task.state}${task.end_reason === null ? '' : `: ${task.end_reason}`}`)
    }
    return exitCodeOfTask(task)
  }

  /** Attempt after attempt, until the task is final. */
  async #follow(submitted: Task): Promise<Task> {
    let task = submitted
    let followed = 0
    for (;;) {
      task = await this.#untilPlaced(task)
      if (task.attempt > followed) {
        const isAgain = followed > 0
        followed = task.attempt
        if (isAgain) this.#line.print('the task begins anew')
        this.#line.clear()
        const watch = this.#watchStart(task)
        await this.#output(task.id).finally(watch.end)
      }
      if (isEnded(task)) return task
      task = await this.#poll(task.id)
      if (!isEnded(task) && task.attempt === followed) await sleep(POLL_INTERVAL_MS)
    }
  }

  /** Says why it waits, while it does. */
  async #untilPlaced(task: Task): Promise<Task> {
    let now = task
    while (now.state === 'pending') {
      this.#printLongWait(now)
      this.#line.show(`task ${now.id}: ${now.wait?.sentence ?? 'pending'}`)
      await sleep(POLL_INTERVAL_MS)
      now = await this.#poll(now.id)
    }
    return now
  }

  /** Once for each such reason, on a terminal or not: a script would wait in silence. */
  #printLongWait({ id, wait }: Task): void {
    const isEndless = wait !== null && NO_END_IN_SIGHT.has(wait.reason)
    const reason = isEndless || wait?.reason === REFUSED ? wait.reason : null
    if (reason !== null && reason !== this.#printedReason) {
      const until = isEndless ? 'This wait does not end unless the task or the cluster is changed; ' : ''
      this.#line.print(`task ${id}: ${wait?.sentence} ${until}Ctrl-C cancels the task.`)
    }
    this.#printedReason = reason
  }

  /**
   * Its output is awaited from its placement on; the start may still be refused, and then the task waits
   * again.
   */
  #watchStart(placed: Task): { readonly end: () => void } {
    let isOver = placed.first_started_at !== null
    const watch = async (): Promise<void> => {
      while (!isOver) {
        const now = await this.#poll(placed.id)
        if (now.state === 'pending') this.#printLongWait(now)
        if (now.first_started_at !== null || isEnded(now)) return
        await sleep(POLL_INTERVAL_MS, undefined, { ref: false })
      }
    }
    // What cannot be read here is told where the output or the end of the task is read.
    watch().catch(() => {})
    return {
      end: () => {
        isOver = true
      },
    }
  }

  /** Both streams, to the streams of the same names. */
  async #output(id: string): Promise<void> {
    const [out, err] = await Promise.allSettled([
      this.#copy(id, 'stdout', process.stdout),
      this.#copy(id, 'stderr', process.stderr),
    ])
    const failed = [out, err].find((one) => one.status === 'rejected')
    if (failed === undefined) return
    // It ended before anything of it ran, or where it ran knows nothing of it any more: its exit code still
    // counts.
    const error: unknown = failed.reason
    if (!(error instanceof ApiError)) throw error
    if (error.status !== 409) this.#line.print(`what the task writes cannot be read: ${error.message}`)
    else if (/simulated/.test(error.message)) this.#line.print(error.message)
  }

  async #copy(id: string, stream: 'stdout' | 'stderr', to: NodeJS.WriteStream): Promise<void> {
    let reached = 0
    const following = this.#client.tasks.followLog(id, {
      stream,
      onInterrupted: (error) => this.#unreachable(error),
    })
    for (;;) {
      const next = await following.next()
      if (next.done === true) {
        if (next.value.why === 'unavailable' && (await this.#hasRun(id)))
          this.#line.print(`the rest of ${stream} cannot be read: its GPU server does not have it any more`)
        return
      }
      this.#isUnreachable = false
      if (next.value.offset > reached)
        this.#line.print(`${next.value.offset - reached} bytes of ${stream} are no longer kept`)
      reached = next.value.offset + next.value.bytes.length
      if (!this.#isPipeBroken && !to.write(next.value.bytes)) await drained(to)
    }
  }

  /** What was never started, a program that is not there, has written nothing that could be lost. */
  async #hasRun(id: string): Promise<boolean> {
    return (await this.#poll(id)).first_started_at !== null
  }

  async #poll(id: string): Promise<Task> {
    const task = await retryWhileUnreachable(
      () => this.#client.tasks.get(id),
      (error) => this.#unreachable(error),
    )
    this.#isUnreachable = false
    return task
  }

  /** Once for each time that it goes away. */
  #unreachable(error: Error): void {
    if (this.#isUnreachable) return
    this.#isUnreachable = true
    this.#line.print(`${error.message}; the task goes on, waiting for the controller`)
  }

  async #cancel(): Promise<void> {
    const id = this.#task?.id
    if (id === undefined) return
    try {
      await retryWhileUnreachable(
        () => this.#client.tasks.cancel(id, { now: this.#isHurried }),
        (error) => this.#unreachable(error),
      )
    } catch (error) {
      // 409: it has just ended by itself.
      if (!(error instanceof ApiError && error.status === 409))
        this.#line.print(error instanceof Error ? error.message : String(error))
    }
  }
}

const FINAL: ReadonlySet<Task['state']> = new Set(['completed', 'failed', 'cancelled', 'lost'])

function isEnded({ state }: Task): boolean {
  return FINAL.has(state)
}
