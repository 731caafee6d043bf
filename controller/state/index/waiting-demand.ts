/**
 * Demand of tasks that wait for their start (semantics 6): the tasks that count, and the GPU-time waited so
 * far.
 */
import type { Instant, Microseconds } from '../../../protocol/units.ts'
import { GroupWaits } from './group-waits.ts'
import type { LiveTask } from '../facts.ts'
import type { PendingQueue } from './pending-queue.ts'

export class WaitingDemand {
  /** Number of tasks whose wait counts as demand, and of the GPUs they request. */
  tasks = 0
  gpus = 0
  /** Up to `settledAt`; never decreases. */
  queueUs: Microseconds = 0
  settledAt: Instant
  /** The same per group, of tasks that target groups. */
  readonly groups = new GroupWaits()
  /** Nodes, groups or reserves changed: waits may begin or cease to count. */
  isFeasibilityStale = false
  readonly #isFeasible: (task: LiveTask) => boolean

  /** @param isFeasible returns true if the task could ever be placed */
  constructor(isFeasible: (task: LiveTask) => boolean, now: Instant) {
    this.#isFeasible = isFeasible
    this.settledAt = now
  }

  settle(now: Instant): void {
    this.queueUs += this.gpus * (now - this.settledAt) * 1000
    this.settledAt = now
  }

  /** Counts the task's wait as demand from now on, if the task could ever be placed. */
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
