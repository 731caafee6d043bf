/**
 * Decides when a task counts as busy or idle: from its own signals, or else from samples of its use. A
 * request that waits for it counts as use in both cases.
 */
import type { DurationMs } from '../../protocol/units.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import type { DeviceListener } from '../core/device.ts'
import type { HostTask } from './host-task.ts'

export class UseTracker {
  readonly #clock: Clock
  readonly #idleAfterMs: DurationMs
  readonly #listener: () => DeviceListener | null

  constructor(clock: Clock, idleAfterMs: DurationMs, listener: () => DeviceListener | null) {
    this.#clock = clock
    this.#idleAfterMs = idleAfterMs
    this.#listener = listener
  }

  /**
   * Handles a signal on its socket; from now on samples are ignored. A task that runs while it is out, or on
   * its way, does not know of the request that waits for it. One that was stopped answers it at its return,
   * and can say so before the return is noted.
   */
  signalled(task: HostTask, isBusy: boolean): void {
    task.doesSignal = true
    if (isHeldFor(task) && !isStarting(task)) {
      if (isBusy) this.#used(task)
      return
    }
    task.isWoken = false
    if (isBusy) this.#used(task)
    else this.#becameIdle(task, this.#clock.now())
  }

  /** A request waits for the task. Until its next signal, samples decide when it is idle again. */
  requested(task: HostTask): void {
    task.isWoken = true
    this.#used(task)
  }

  /** Its bytes are back: a request that woke it is answered from now on. */
  returned(task: HostTask): void {
    if (task.isWoken) task.lastUseAt = this.#clock.now()
  }

  /** A process has joined it: it counts as busy until a sample shows that it is idle. */
  began(task: HostTask): void {
    this.#used(task)
  }

  /** Handles a sample of its use; null: unknown. A stopped task cannot show use, but may have been woken. */
  sampled(task: HostTask, isBusy: boolean | null): void {
    if ((task.doesSignal && !task.isWoken) || isBusy === null || !task.isResident || isHeldFor(task)) return
    const now = this.#clock.now()
    if (isBusy) this.#used(task)
    else if (now - task.lastUseAt >= this.#idleAfterMs) this.#becameIdle(task, task.lastUseAt)
  }

  #used(task: HostTask): void {
    task.lastUseAt = this.#clock.now()
    if (task.wantsGpu) return
    task.wantsGpu = true
    this.#listener()?.gpuWanted(task.taskId, task.attempt)
  }

  #becameIdle(task: HostTask, lastUseAt: number): void {
    task.lastUseAt = lastUseAt
    if (!task.wantsGpu) return
    task.wantsGpu = false
    this.#listener()?.gpuUsed(task.taskId, task.attempt, this.#clock.now() - lastUseAt)
  }
}

/** A proxy holds a request for it since its swap-out began, and says so once: only its return ends that. */
function isHeldFor({ isWoken, isResident, isMoving }: HostTask): boolean {
  return isWoken && (!isResident || isMoving)
}

/** It was stopped, and runs again. */
function isStarting({ isResident, isMoving, staysRunning }: HostTask): boolean {
  return !staysRunning && isMoving && !isResident
}
