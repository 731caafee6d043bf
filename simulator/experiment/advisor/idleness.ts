/**
 * How idle the tasks of a workload are without a scheduler. Only a task that is idle for the idle period, and
 * may be swapped, ever gives its VRAM to another; without such tasks overcommit cannot help.
 */
import type { DurationMs } from '../../../protocol/units.ts'
import type { ArrivalSource } from '../../scenario/arrivals.ts'
import type { StartTask } from '../../scenario/generate.ts'
import type { SimTask } from '../../scenario/scenario.ts'
import type { Work } from '../../trace/trace-format.ts'
import { aloneMsOf, busyMsOf } from '../../trace/work.ts'

export interface Idleness {
  /** Number of examined tasks: those present at the start, and at most MAX_TASKS arrivals. */
  readonly tasks: number
  /** No task was left out, so a claim about all tasks is valid. */
  readonly isComplete: boolean
  /** Tasks that are idle at least once for the idle period, and may be swapped. */
  readonly swappable: number
  /** Share of GPU time without work if every task runs alone. 0 without tasks. */
  readonly idlePercent: number
  /** Share of GPU time of tasks that use whole GPUs if every task runs alone. 0 without tasks. */
  readonly exclusivePercent: number
  readonly idlePeriodMs: DurationMs
}

/** This number of arrivals represents a workload well enough. */
const MAX_TASKS = 100_000

/**
 * Reads the tasks from the source and closes it. Throws TraceError if reading fails.
 * @param present the tasks present at the start
 */
export async function idlenessOf(
  source: ArrivalSource,
  idlePeriodMs: DurationMs,
  present: readonly StartTask[] = [],
): Promise<Idleness> {
  let [tasks, swappable, busyMs, aloneMs, exclusiveMs] = [0, 0, 0, 0, 0]
  const take = ({ work, request }: SimTask, idleForMs: DurationMs): void => {
    tasks += 1
    busyMs += busyMsOf(work) * request.gpuCount
    aloneMs += aloneMsOf(work) * request.gpuCount
    if (request.gpuMode === 'exclusive') exclusiveMs += aloneMsOf(work) * request.gpuCount
    if (request.noswap === 0 && idleForMs + longestIdleMs(work) >= idlePeriodMs) swappable += 1
  }
  for (const task of present) take(task, idleSoFarMs(task))
  let isComplete = false
  try {
    while (tasks < present.length + MAX_TASKS) {
      if (source.needsFill) await source.fill()
      const task = source.next()
      isComplete = task === null
      if (task === null) break
      take(task, 0)
    }
  } finally {
    await source.close()
  }
  const shareOf = (ms: DurationMs): number => (aloneMs === 0 ? 0 : (100 * ms) / aloneMs)
  return {
    tasks,
    isComplete,
    swappable,
    idlePercent: shareOf(aloneMs - busyMs),
    exclusivePercent: shareOf(exclusiveMs),
    idlePeriodMs,
  }
}

/** Infinite for a swapped-out task: it has been idle for long enough already. */
function idleSoFarMs({ state: { placed } }: StartTask): DurationMs {
  return placed?.residency === 'swapped_out' ? Infinity : (placed?.idleForMs ?? 0)
}

/** Longest time without work of a task that runs alone; 0 if it always has work. */
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
