/**
 * Ends tasks that use more VRAM than their own limit. Nothing prevents the allocation, so other tasks may
 * fail until the next two samples.
 */
import { vramLimitWords } from '../../protocol/resource-limits.ts'
import type { Mib } from '../../protocol/units.ts'
import type { AttemptEnd } from '../core/device.ts'
import type { AcceleratedTask, TaskUse } from './accelerator.ts'
import { HostTask } from './host-task.ts'

const SIGKILL_EXIT = 137

export class VramLimits {
  readonly #kill: (task: HostTask) => void
  /** Tasks above their limit in the latest sample. */
  #above: ReadonlySet<HostTask> = new Set()
  readonly #killedAt = new WeakMap<HostTask, Mib>()

  /** @param kill ends all processes of the task at once, as the kernel does at a limit of memory */
  constructor(kill: (task: HostTask) => void) {
    this.#kill = kill
  }

  /** Two samples in a row decide, so that the allocations of a short moment do not. */
  sampled(uses: ReadonlyMap<AcceleratedTask, TaskUse>): void {
    const above = new Set<HostTask>()
    for (const [task, { usedMib }] of uses) {
      if (!(task instanceof HostTask) || task.isEnded || !isAbove(task, usedMib)) continue
      above.add(task)
      if (!this.#above.has(task) || this.#killedAt.has(task)) continue
      this.#killedAt.set(task, mostOf(usedMib))
      this.#kill(task)
    }
    this.#above = above
  }

  /** Returns the end of a task that was ended for exceeding its VRAM; null: another task. */
  endOf(task: HostTask): AttemptEnd | null {
    const usedMib = this.#killedAt.get(task)
    const limitMib = task.start.vramLimitMib
    if (usedMib === undefined || limitMib === undefined) return null
    const detail = vramLimitWords(usedMib, limitMib)
    return { exitCode: SIGKILL_EXIT, detail, didEndItself: true, didLeaseEnd: false }
  }
}

/** A GPU without a measurement counts as within the limit. */
function isAbove({ start }: HostTask, usedMib: TaskUse['usedMib']): boolean {
  return start.vramLimitMib !== undefined && mostOf(usedMib) > start.vramLimitMib
}

function mostOf(usedMib: TaskUse['usedMib']): Mib {
  return Math.max(0, ...usedMib.map((mib) => mib ?? 0))
}
