/** When a task counts as busy and when as idle: by what it says itself, or else by what it is seen to use. */
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

  /** On its socket; from here on its own word counts. */
  signalled(task: HostTask, isBusy: boolean): void {
    task.doesSignal = true
    if (isBusy) this.#used(task)
    else this.#becameIdle(task, this.#clock.now())
  }

  /** A sample of its use; null: unknown. A task that does not run cannot be seen to work. */
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
