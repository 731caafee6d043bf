/**
 * Demand of those that wait for their start (semantics 6): who counts, and the GPU-time that they have waited
 * for so far.
 */
import type { Instant, Microseconds } from '../../../protocol/units.ts'
import { GroupWaits } from '../explain/group-waits.ts'
import type { LiveTask } from '../live.ts'
import type { PendingQueue } from './pending-queue.ts'

export class WaitingDemand {
  /** Tasks whose wait counts as demand, and the GPUs they ask for. */
  tasks = 0
  gpus = 0
  /** Up to `settledAt`; grows only. */
  queueUs: Microseconds = 0
  settledAt: Instant
  /** The same of tasks that target groups, group by group. */
  readonly groups = new GroupWaits()
  /** Nodes, groups or reserves changed: some waits may begin or stop to count. */
  isFeasibilityStale = false
  readonly #isFeasible: (task: LiveTask) => boolean

  /** @param isFeasible whether the task could ever be placed */
  constructor(isFeasible: (task: LiveTask) => boolean, now: Instant) {
    this.#isFeasible = isFeasible
    this.settledAt = now
  }

  settle(now: Instant): void {
    this.queueUs += this.gpus * (now - this.settledAt) * 1000
    this.settledAt = now
  }

  /** From now on the task's wait counts as demand, if it could ever be placed. */
  begin(task: LiveTask, now: Instant): void {
    task.isFeasible = this.#isFeasible(task)
    if (!task.isFeasible || task.waitCountedFrom !== null) return
    this.settle(now)
    const { gpuCount, groups } = task.spec
    this.gpus += gpuCount
    this.tasks += 1
    if (groups.length > 0) this.groups.begin(groups, gpuCount, now)
    task.waitCountedFrom = now
  }

  end(task: LiveTask, now: Instant): void {
    if (task.waitCountedFrom === null) return
    this.settle(now)
    const { gpuCount, groups } = task.spec
    this.gpus -= gpuCount
    this.tasks -= 1
    if (groups.length > 0) this.groups.end(groups, gpuCount, now)
    task.queueUs += (now - task.waitCountedFrom) * 1000 * gpuCount
    task.waitCountedFrom = null
  }

  settleFeasibility(queues: Iterable<PendingQueue>, now: Instant): void {
    if (!this.isFeasibilityStale) return
    this.isFeasibilityStale = false
    for (const queue of queues) {
      for (const task of queue.tasks()) {
        const isFeasible = this.#isFeasible(task)
        if (isFeasible === task.isFeasible) continue
        if (isFeasible) this.begin(task, now)
        else {
          this.end(task, now)
          task.isFeasible = false
        }
      }
    }
  }
}
