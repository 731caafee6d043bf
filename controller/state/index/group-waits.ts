/** Demand of the tasks that target a group and wait for their start (semantics 6). */
import type { Instant, Microseconds } from '../../../protocol/units.ts'

export interface GroupWait {
  /** Number of tasks whose wait counts as demand, and of the GPUs they request. */
  tasks: number
  gpus: number
  /** GPU-time waited so far; never decreases. */
  queueUs: Microseconds
  settledAt: Instant
}

/** A task that targets several groups waits in each of them: any of them would do, so each lacks capacity. */
export class GroupWaits {
  readonly #byGroup = new Map<string, GroupWait>()

  begin(groups: readonly string[], gpuCount: number, now: Instant): void {
    for (const group of groups) this.#change(group, 1, gpuCount, now)
  }

  end(groups: readonly string[], gpuCount: number, now: Instant): void {
    for (const group of groups) this.#change(group, -1, -gpuCount, now)
  }

  /** Returns the demand up to now; null if no task has ever waited for the group. */
  of(group: string, now: Instant): Readonly<GroupWait> | null {
    const wait = this.#byGroup.get(group)
    if (wait !== undefined) settle(wait, now)
    return wait ?? null
  }

  #change(group: string, tasks: number, gpus: number, now: Instant): void {
    let wait = this.#byGroup.get(group)
    if (wait === undefined) {
      wait = { tasks: 0, gpus: 0, queueUs: 0, settledAt: now }
      this.#byGroup.set(group, wait)
    }
    settle(wait, now)
    wait.tasks += tasks
    wait.gpus += gpus
  }
}

function settle(wait: GroupWait, now: Instant): void {
  wait.queueUs += wait.gpus * (now - wait.settledAt) * 1000
  wait.settledAt = now
}
