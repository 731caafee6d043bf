/**
 * One attempt on this host, and whether its processes run: they do unless the end of the lease or the
 * accelerator stops them.
 */
import type { Instant, Mib, SwapMethod } from '../../protocol/units.ts'
import type { AttemptStart } from '../core/attempt-start.ts'
import { staysRunning, type SwappedTask } from '../core/swap-steps.ts'
import type { Guards } from '../guard/guards.ts'
import type { AcceleratedTask } from './accelerator.ts'
import type { AttachedProcess } from './attached-process.ts'
import { errorText } from '../../protocol/error-text.ts'

export class HostTask implements AcceleratedTask, SwappedTask {
  readonly start: AttemptStart
  readonly taskId: string
  readonly attempt: number
  readonly gpus: readonly number[]
  vramMib: Mib
  wantsGpu = false
  lastUseAt: number
  /** The task signals its use itself; samples are ignored from then on. */
  doesSignal = false
  /** Its bytes are in VRAM, or on their way out. */
  isResident = true
  /** A request waited for it, and it has not signalled since. */
  isWoken = false
  isMoving = false
  swappedOutBy: SwapMethod = 'driver'
  residualMib: Mib = 0
  mayBeSuspended = false
  areHooksGivenUp = false
  hookFailures: readonly Instant[] = []
  toldAgainAt: Instant | null = null
  /** Its length says what it uses of declared GPUs, if it exists; null: a lease. */
  vramFile: string | null = null
  isEnded = false
  /** The process of a lease; null: a lease without one, or a task with a command. */
  process: AttachedProcess | null = null
  readonly #guards: Guards
  readonly #onTrouble: (task: HostTask, why: string) => void
  #isFrozen = false
  #isHeld = false
  /** The last signal sent: true for SIGSTOP. */
  #isStopped: boolean
  /** Sends signals one after the other. */
  #signals: Promise<void> = Promise.resolve()

  constructor(
    start: AttemptStart,
    now: number,
    guards: Guards,
    found: { readonly isStopped: boolean; readonly isHeld: boolean },
    onTrouble: (task: HostTask, why: string) => void,
  ) {
    this.start = start
    this.taskId = start.taskId
    this.attempt = start.attempt
    this.gpus = start.gpus
    this.vramMib = start.vramMib
    this.lastUseAt = now
    this.#guards = guards
    this.#onTrouble = onTrouble
    this.#isStopped = found.isStopped
    this.#isFrozen = found.isStopped
    this.#isHeld = found.isHeld
    this.isResident = !found.isHeld
  }

  get isFrozen(): boolean {
    return this.#isFrozen
  }

  /** According to orders; a guard may still have stopped it for the lease. */
  get shouldRun(): boolean {
    return !this.#isFrozen && !this.#isHeld
  }

  get staysRunning(): boolean {
    return staysRunning(this)
  }

  /** A lease without a process uses nothing that can be measured. */
  get isSampled(): boolean {
    return !this.start.isLease || this.process !== null
  }

  /** It runs; the task stops it at once if its bytes are not in VRAM. */
  attach(process: AttachedProcess): void {
    this.process = process
    this.doesSignal = false
    this.#isStopped = false
    this.#signalled(this.#signal())
  }

  processIds(): readonly number[] {
    const { process } = this
    if (process !== null) return process.isAlive ? [process.key.pid] : []
    return this.start.isLease ? [] : this.#guards.processIds(this.taskId, this.attempt)
  }

  /** Stops the task for the accelerator: it must not run while its data is elsewhere. */
  suspend(): Promise<void> {
    this.#isHeld = true
    return this.#signal()
  }

  resume(): Promise<void> {
    this.#isHeld = false
    return this.#signal()
  }

  freeze(): void {
    this.#isFrozen = true
    this.#signalled(this.#signal())
  }

  thaw(): void {
    this.#isFrozen = false
    this.#signalled(this.#signal())
  }

  /** A guard may have refused to let it run because it had not read the new lease yet. */
  retry(): void {
    if (this.shouldRun && this.#isStopped) this.#signalled(this.#signal())
  }

  /** Its guard stopped it while this server was inactive: orders it to run again, if it should. */
  wake(): void {
    if (!this.shouldRun) return
    this.#isStopped = true
    this.#signalled(this.#signal())
  }

  #signal(): Promise<void> {
    const done = this.#signals.then(async () => {
      const isToStop = !this.shouldRun
      if (!this.isSampled || this.isEnded || isToStop === this.#isStopped) return
      if (this.process !== null) await this.#signalProcess(this.process, isToStop)
      else if (isToStop) await this.#guards.suspend(this.taskId, this.attempt)
      else await this.#guards.resume(this.taskId, this.attempt)
      this.#isStopped = isToStop
    })
    this.#signals = done.catch(() => {})
    return done
  }

  async #signalProcess(process: AttachedProcess, isToStop: boolean): Promise<void> {
    if (isToStop) await process.suspend()
    else process.resume()
  }

  #signalled(done: Promise<void>): void {
    done.catch((error: unknown) => {
      if (!this.isEnded) this.#onTrouble(this, errorText(error))
    })
  }
}
