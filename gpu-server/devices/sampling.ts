/** Looks once a second at what each task uses of its GPUs. */
import type { DurationMs } from '../../protocol/units.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type { DeviceListener } from '../core/device.ts'
import type { Accelerator } from './accelerator.ts'
import { HostTask } from './host-task.ts'
import type { LeaseProcesses } from './lease-processes.ts'
import type { SwapMethods } from './swap-methods.ts'
import type { TaskRequests } from './task-requests.ts'
import type { UseTracker } from './use-tracker.ts'
import type { VramLimits } from './vram-limits.ts'
import { errorText } from '../../protocol/error-text.ts'

export interface SamplingParts {
  readonly accelerator: Accelerator
  readonly clock: Clock
  readonly tasks: () => Iterable<HostTask>
  readonly listener: () => DeviceListener | null
  readonly leases: LeaseProcesses
  readonly methods: SwapMethods
  readonly limits: VramLimits
  readonly requests: TaskRequests<HostTask>
  readonly uses: UseTracker
  /** Receives one line for the log. */
  readonly onNote: (line: string) => void
}

const SAMPLE_INTERVAL_MS: DurationMs = 1_000

export class Sampling {
  readonly #parts: SamplingParts
  #cancel: () => void = () => {}
  #isStopped = false

  constructor(parts: SamplingParts) {
    this.#parts = parts
  }

  start(): void {
    const { clock } = this.#parts
    this.#cancel()
    this.#cancel = clock.at(clock.now() + SAMPLE_INTERVAL_MS, () => void this.#sample(), RANK_DEVICE)
  }

  stop(): void {
    this.#isStopped = true
    this.#cancel()
  }

  async #sample(): Promise<void> {
    const { accelerator, leases, methods, limits, listener, onNote } = this.#parts
    try {
      leases.dropEnded(this.#parts.tasks())
      const tasks = [...this.#parts.tasks()].filter((task) => task.isSampled)
      const { uses, freeMib } = await accelerator.sample(tasks)
      if (this.#isStopped) return
      methods.sampled(uses)
      limits.sampled(uses)
      for (const [task, { isBusy }] of uses) if (task instanceof HostTask) void this.#sampled(task, isBusy)
      freeMib.forEach((mib, gpu) => mib !== null && listener()?.freeMeasured(gpu, mib))
    } catch (error) {
      onNote(`the accelerator cannot be sampled: ${errorText(error)}`)
    }
    if (!this.#isStopped) this.start()
  }

  /** A request that waits is use, although the GPU is idle. */
  async #sampled(task: HostTask, isBusy: boolean | null): Promise<void> {
    const { requests, uses } = this.#parts
    const doesWait = isBusy !== true && task.isResident && (await requests.hasRequest(task))
    if (task.isEnded || this.#isStopped) return
    if (doesWait && task.isResident && !task.isMoving) uses.requested(task)
    else uses.sampled(task, isBusy)
  }
}
