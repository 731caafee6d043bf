/** Decides when a task counts as busy or idle: from its own signals, or else from samples of its use. */
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

  /** Handles a signal on its socket; from now on samples are ignored. */
  signalled(task: HostTask, isBusy: boolean): void {
    task.doesSignal = true
    if (isBusy) this.#used(task)
    else this.#becameIdle(task, this.#clock.now())
  }

  /** Handles a sample of its use; null: unknown. A stopped task cannot show use. */
  sampled(task: HostTask, isBusy: boolean | null): void {
    if (task.doesSignal || isBusy === null) return
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
