/**
 * How idle the tasks of a workload are by themselves, before any controller has placed them: only a task that is idle for the idle period, and may
 * be swapped, ever gives its VRAM to another. Without such tasks overcommit cannot help.
 */
import type { DurationMs } from '../../protocol/units.ts'
import type { ArrivalSource } from '../scenario/arrivals.ts'
import type { Work } from '../trace/trace-format.ts'
import { aloneMsOf, busyMsOf } from '../trace/work.ts'

export interface Idleness {
  /** Tasks looked at, at most MAX_TASKS. */
  readonly tasks: number
  /** Those that are idle once for at least the idle period, and may be swapped. */
  readonly swappable: number
  /** GPU time without work, of all GPU time, when every task runs alone. 0 without any. */
  readonly idlePercent: number
  readonly idlePeriodMs: DurationMs
}

/** The first of a workload say enough about it. */
export const MAX_TASKS = 100_000

/** Takes the tasks out of the source and closes it. Throws what reading throws (TraceError). */
export async function idlenessOf(source: ArrivalSource, idlePeriodMs: DurationMs): Promise<Idleness> {
  let [tasks, swappable, busyMs, aloneMs] = [0, 0, 0, 0]
  try {
    while (tasks < MAX_TASKS) {
      if (source.needsFill) await source.fill()
      const task = source.next()
      if (task === null) break
      tasks += 1
      busyMs += busyMsOf(task.work) * task.request.gpuCount
      aloneMs += aloneMsOf(task.work) * task.request.gpuCount
      if (task.request.noswap === 0 && longestIdleMs(task.work) >= idlePeriodMs) swappable += 1
    }
  } finally {
    await source.close()
  }
  return { tasks, swappable, idlePercent: aloneMs === 0 ? 0 : (100 * (aloneMs - busyMs)) / aloneMs, idlePeriodMs }
}

/** The longest time without work of a task that runs alone; 0 when it always has some. */
export function longestIdleMs(work: Work): DurationMs {
  switch (work.kind) {
    case 'duration':
      return 0
    case 'phases': {
      let longest = 0
      for (const [, idleMs] of work.phases) longest = Math.max(longest, idleMs)
      return longest
    }
    case 'bursts': {
      let [longest, doneMs] = [0, 0]
      for (const [offsetMs, busyMs] of work.at) {
        longest = Math.max(longest, offsetMs - doneMs)
        doneMs = Math.max(doneMs, offsetMs) + busyMs
      }
      return Math.max(longest, work.stayMs - doneMs)
    }
  }
}
