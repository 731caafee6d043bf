/** `headroom run`: submits a task, follows it and returns its exit code. */
import { fstatSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  ApiError,
  type HeadroomClient,
  type Task,
  type TaskRequest,
} from '../../clients/typescript/client.ts'
import { isFinal } from '../../controller/model/task.ts'
import type { WaitReason } from '../../controller/query/explain/explain.ts'
import { EXIT_OK, EXIT_TIMEOUT, UsageError } from '../../services/exit-codes.ts'
import { formatDuration } from '../../simulator/document/quantity.ts'
import type { SwapEngine } from '../../protocol/message-fields.ts'
import type { DurationMs, Mib, OnNodeLoss, RequestedSwapMethod } from '../../protocol/units.ts'
import { exitCodeOfTask, onInterrupt, type Interrupts } from '../command/interrupts.ts'
import { openClient } from '../command/session.ts'
import { taskLabel } from '../command/task-label.ts'
import { drained } from '../output/drained.ts'
import { size } from '../output/figures.ts'
import { StatusLine } from '../output/status-line.ts'
import { visible } from '../output/terminal-text.ts'
import { withManifest, withUpload } from './task-workdir.ts'
import { retryWhileUnreachable } from './retry.ts'
import { readTaskFile } from './task-file.ts'
import { demandOf, environmentOf, type DemandOptions, type EnvironmentOptions } from './task-request.ts'
import { errorText } from '../../protocol/error-text.ts'

export interface RunOptions extends DemandOptions, EnvironmentOptions {
  readonly maxRuntime?: number
  readonly stopGrace?: number
  readonly onNodeLoss?: OnNodeLoss
  readonly maxRequeues?: number | null
  readonly image?: string
  readonly port: readonly string[]
  readonly wakeOnRequest?: boolean
  readonly swapMethod?: RequestedSwapMethod
  readonly engine?: SwapEngine
  readonly workdir?: string
  readonly cwd?: string
  readonly mount: readonly string[]
  readonly memory?: Mib
  readonly cpus?: number
  readonly pidsLimit?: number
  readonly vramLimit?: Mib
  readonly idleSwapOut?: number
  readonly keepWarm?: boolean
  readonly file?: string
  readonly detach?: boolean
  readonly dryRun?: boolean
  readonly timeout?: DurationMs
  readonly failIfNeverFits?: boolean
}

/** Reasons that only a change of the cluster or the task resolves: such a wait has no end by itself. */
const NO_END_IN_SIGHT: ReadonlySet<string> = new Set([
  'HELD',
  'GROUP_NOT_FOUND',
  'GROUP_EMPTY',
  'NEVER_FITS',
  'EXCEEDS_NODE_GPU_COUNT',
  'NO_NODES',
  'EXEC_NOT_ALLOWED',
  'FEATURE_MISSING',
] satisfies WaitReason[])

/** Retried in minutes or hours, mostly with the same result: for example a missing program. */
const REFUSED: WaitReason = 'START_REFUSED'

/** Interval of requests for the state of a task. */
const POLL_INTERVAL_MS = 500
/** Submissions are retried only if they were certainly not accepted. */
const SUBMIT_ATTEMPTS = 3
/** 128 + SIGPIPE: the reader of its output is gone. */
const EXIT_BROKEN_PIPE = 141

export async function runTask(command: readonly string[], options: RunOptions): Promise<number> {
  const request =
    options.file === undefined ? requestOf(command, options) : requestIn(options.file, command, options)
  const client = openClient(options, { attempts: SUBMIT_ATTEMPTS })
  if (options.dryRun === true) return printDryRun(client, await withManifest(request))
  if (options.detach === true) {
    process.stdout.write(`${(await client.tasks.submit(await withUpload(client, request))).id}\n`)
    return EXIT_OK
  }
  const run = new Run(client, options)
  return run.toItsEnd(async () => client.tasks.submit(await withUpload(client, request)))
}

function requestIn(file: string, command: readonly string[], options: RunOptions): TaskRequest {
  const { env, envFile, secret, group, label, port, mount } = options
  const lists = [env, envFile, secret, group, label, port, mount]
  if (command.length > 0 || lists.some((given) => given.length > 0))
    throw new UsageError('--file describes the whole task: omit the command and the other options')
  const request = readTaskFile(file)
  if (request.command !== undefined) return request
  throw new UsageError(`${file}: the file has no command; \`headroom run\` requires one`)
}

function requestOf(command: readonly string[], options: RunOptions): TaskRequest {
  if (command.length === 0) throw new UsageError('a command is required, after --, or a task file with -f')
  return {
    ...demandOf(options),
    command,
    ...environmentOf(options),
    ...(options.maxRuntime === undefined ? {} : { max_runtime_seconds: options.maxRuntime }),
    ...(options.stopGrace === undefined ? {} : { stop_grace_seconds: options.stopGrace }),
    ...(options.onNodeLoss === undefined ? {} : { on_node_loss: options.onNodeLoss }),
    ...(options.maxRequeues === undefined ? {} : { max_requeues: options.maxRequeues }),
    ...(options.image === undefined ? {} : { image: options.image }),
    ...(options.port.length === 0 ? {} : { ports: options.port.map(portOf) }),
    ...(options.idleSwapOut === undefined ? {} : { idle_swap_out_seconds: options.idleSwapOut }),
    ...(options.keepWarm === true ? { keep_warm: true } : {}),
    ...(options.wakeOnRequest === undefined ? {} : { wake_on_request: options.wakeOnRequest }),
    ...(options.swapMethod === undefined ? {} : { swap_method: options.swapMethod }),
    ...(options.engine === undefined ? {} : { swap_method: 'engine', swap_engine: options.engine }),
    ...(options.workdir === undefined ? {} : { workdir: options.workdir }),
    ...(options.cwd === undefined ? {} : { cwd: resolve(options.cwd) }),
    ...(options.mount.length === 0 ? {} : { mounts: options.mount }),
    ...(options.memory === undefined ? {} : { memory_mib: options.memory }),
    ...(options.cpus === undefined ? {} : { cpus: options.cpus }),
    ...(options.pidsLimit === undefined ? {} : { pids_limit: options.pidsLimit }),
    ...(options.vramLimit === undefined ? {} : { vram_limit_mib: options.vramLimit }),
  }
}

type Port = NonNullable<TaskRequest['ports']>[number]

function portOf(text: string): Port {
  const [, name = '', target, protocol = 'tcp'] =
    /^([a-z0-9][a-z0-9-]*)=(\d{1,5})(?:\/(tcp|http))?$/.exec(text) ?? []
  if (target === undefined)
    throw new UsageError(
      `--port ${text}: must be NAME=PORT or NAME=PORT/http, for example api=8000 or api=8000/http`,
    )
  return { name, target: Number(target), protocol: protocol as Port['protocol'] }
}

/** `headroom submit`. */
export function submitTask(command: readonly string[], options: RunOptions): Promise<number> {
  return runTask(command, { ...options, detach: true })
}

class Run {
  readonly #client: HeadroomClient
  readonly #line = new StatusLine()
  #task: Task | null = null
  #isCancelled = false
  #isHurried = false
  #isUnreachable = false
  #isPipeBroken = false
  /** The last reason of a wait that was printed. */
  #printedReason: string | null = null

  readonly #limits: Pick<RunOptions, 'timeout' | 'failIfNeverFits'>
  #isTimedOut = false

  constructor(client: HeadroomClient, limits: Pick<RunOptions, 'timeout' | 'failIfNeverFits'>) {
    this.#client = client
    this.#limits = limits
  }

  async toItsEnd(submit: () => Promise<Task>): Promise<number> {
    const interrupts = onInterrupt(
      () => {
        this.#line.print('cancelling the task; press Ctrl-C again to kill it immediately')
        this.#isCancelled = true
        void this.#cancel()
      },
      () => {
        this.#line.print('killing the task; press Ctrl-C again to exit without waiting for it')
        this.#isHurried = true
        void this.#cancel()
      },
    )
    const onBrokenPipe = (): void => {
      this.#isPipeBroken = true
      if (!this.#isCancelled) void this.#cancel()
      this.#isCancelled = true
    }
    const { timeout } = this.#limits
    const timer =
      timeout === undefined
        ? undefined
        : setTimeout(() => {
            this.#isTimedOut = true
            this.#giveUp(`the task has not ended within ${formatDuration(timeout)}`)
          }, timeout)
    const stdin = noticeStdin(() => this.#line.print('stdin is not passed to the task'))
    process.stdout.on('error', onBrokenPipe)
    process.stderr.on('error', onBrokenPipe)
    try {
      this.#task = await submit()
      if (this.#isCancelled) await this.#cancel()
      return this.#codeOf(await this.#follow(this.#task), interrupts)
    } finally {
      this.#line.clear()
      clearTimeout(timer)
      stdin.end()
      interrupts.end()
    }
  }

  #codeOf(task: Task, interrupts: Interrupts): number {
    if (this.#isPipeBroken) return EXIT_BROKEN_PIPE
    if (task.state === 'cancelled' && this.#isTimedOut) return EXIT_TIMEOUT
    if (task.state === 'cancelled' && interrupts.exitCode !== null) return interrupts.exitCode
    // The code that the command returned says enough.
    if (task.state !== 'completed' && task.end_code !== 'exit_code') {
      const end = task.state === 'failed' ? 'failed' : `is ${task.state}`
      this.#line.print(`the task ${end}${task.end_reason === null ? '' : `: ${task.end_reason}`}`)
    }
    return exitCodeOfTask(task)
  }

  /** Follows one attempt after the other, until the task is final. */
  async #follow(submitted: Task): Promise<Task> {
    let task = submitted
    let followed = 0
    for (;;) {
      task = await this.#untilPlaced(task)
      if (task.attempt > followed) {
        const isAgain = followed > 0
        followed = task.attempt
        if (isAgain) this.#line.print('the task starts again')
        this.#line.clear()
        const watch = this.#watchStart(task)
        await this.#output(task.id).finally(watch.end)
      }
      if (isFinal(task.state)) return task
      task = await this.#poll(task.id)
      if (!isFinal(task.state) && task.attempt === followed) await sleep(POLL_INTERVAL_MS)
    }
  }

  /** Shows why it waits, while it does. */
  async #untilPlaced(task: Task): Promise<Task> {
    let now = task
    while (now.state === 'pending') {
      this.#printLongWait(now)
      this.#line.show(`task ${taskLabel(now)}: ${now.wait?.sentence ?? 'pending'}`)
      await sleep(POLL_INTERVAL_MS)
      now = await this.#poll(now.id)
    }
    return now
  }

  /** Prints each such reason once, on a terminal or not: a script would otherwise wait without a message. */
  #printLongWait(task: Task): void {
    const { wait } = task
    const isEndless = wait !== null && NO_END_IN_SIGHT.has(wait.reason)
    const reason = isEndless || wait?.reason === REFUSED ? wait.reason : null
    if (reason !== null && reason !== this.#printedReason) {
      const until = isEndless ? 'It cannot start until it or the cluster is changed. ' : ''
      this.#line.print(`task ${taskLabel(task)}: ${wait?.sentence} ${until}Press Ctrl-C to cancel the task.`)
    }
    this.#printedReason = reason
    if (isEndless && wait.reason !== 'HELD' && this.#limits.failIfNeverFits === true && !this.#isCancelled)
      this.#giveUp('it cannot start unless it or the cluster is changed (--fail-if-never-fits)')
  }

  #giveUp(why: string): void {
    this.#line.print(`cancelling the task: ${why}`)
    this.#isCancelled = true
    void this.#cancel()
  }

  /**
   * Its output is followed from its placement on; the start may still be refused, and then the task waits
   * again.
   */
  #watchStart(placed: Task): { readonly end: () => void } {
    let isOver = placed.first_started_at !== null
    const watch = async (): Promise<void> => {
      while (!isOver) {
        const now = await this.#poll(placed.id)
        if (now.state === 'pending') this.#printLongWait(now)
        if (now.first_started_at !== null || isFinal(now.state)) return
        await sleep(POLL_INTERVAL_MS, undefined, { ref: false })
      }
    }
    // An error here is reported where the output or the end of the task is read.
    watch().catch(() => {})
    return {
      end: () => {
        isOver = true
      },
    }
  }

  /** Copies both streams to the streams of the same names. */
  async #output(id: string): Promise<void> {
    const [out, err] = await Promise.allSettled([
      this.#copy(id, 'stdout', process.stdout),
      this.#copy(id, 'stderr', process.stderr),
    ])
    const failed = [out, err].find((one) => one.status === 'rejected')
    if (failed === undefined) return
    // It ended before it ran, or its server no longer has its output: its exit code still counts.
    const error: unknown = failed.reason
    if (!(error instanceof ApiError)) throw error
    if (error.status !== 409) this.#line.print(`cannot read the output of the task: ${error.message}`)
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
          this.#line.print(`cannot read the rest of ${stream}: the GPU server no longer has it`)
        return
      }
      this.#isUnreachable = false
      if (next.value.offset > reached)
        this.#line.print(`${next.value.offset - reached} bytes of ${stream} are no longer available`)
      reached = next.value.offset + next.value.bytes.length
      if (!this.#isPipeBroken && !to.write(next.value.bytes)) await drained(to)
    }
  }

  /** An attempt that was never started (a missing program) has no output to lose. */
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

  /** Reports each interruption once. */
  #unreachable(error: Error): void {
    if (this.#isUnreachable) return
    this.#isUnreachable = true
    this.#line.print(`${error.message}; the task continues; waiting for the controller`)
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
      if (!(error instanceof ApiError && error.status === 409)) this.#line.print(errorText(error))
    }
  }
}

export async function printDryRun(client: HeadroomClient, request: TaskRequest): Promise<number> {
  const { placement, starts, victims, wait } = await client.tasks.tryOut(request)
  const lines: string[] = []
  if (placement !== null) {
    const when =
      starts === 'now'
        ? 'now'
        : victims.length === 0
          ? 'once other tasks have released their VRAM'
          : 'once these tasks are swapped out'
    lines.push(`It would start on GPU ${placement.gpus.join(', ')} of ${placement.node_name} ${when}.`)
  }
  for (const { task_id: id, name, priority, mib } of victims)
    lines.push(`  swapped out: ${taskLabel({ id, name })}, P${priority}, ${size(mib)} per GPU`)
  if (wait !== null) lines.push(`It would wait. ${wait.sentence}`)
  process.stdout.write(lines.map((line) => `${visible(line)}\n`).join(''))
  return EXIT_OK
}

/** @param onInput called once, when there is input that the task would have read */
export function noticeStdin(
  onInput: () => void,
  stdin: NodeJS.ReadStream & { readonly fd: 0 } = process.stdin,
): { end(): void } {
  const kind = kindOf(stdin.fd)
  if (kind === 'file') onInput()
  if (kind !== 'pipe') return { end: () => {} }
  const take = (): void => {
    end()
    onInput()
  }
  const end = (): void => {
    stdin.off('data', take)
    stdin.off('error', end)
    stdin.pause()
    // An open pipe must not keep the finished process alive.
    stdin.unref()
  }
  stdin.on('data', take)
  stdin.on('error', end)
  return { end }
}

/** `none`: a terminal, /dev/null, an empty file, a closed descriptor. */
function kindOf(fd: number): 'file' | 'pipe' | 'none' {
  try {
    const stat = fstatSync(fd)
    if (stat.isFile()) return stat.size > 0 ? 'file' : 'none'
    return stat.isFIFO() || stat.isSocket() ? 'pipe' : 'none'
  } catch {
    return 'none'
  }
}
