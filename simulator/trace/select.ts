import type { DurationMs } from '../../protocol/units.ts'
import { type Seed, seededStream } from '../kernel/seeded-random.ts'
import { TraceError } from './trace-error.ts'

/**
 * Selects tasks of a trace and their arrivals. Used by importers and by scenarios that load a trace:
 * importing with a selection yields the same tasks as importing without and loading with it.
 */
export interface TraceSelection {
  /** Tasks with fromMs <= at < toMs, in the trace's own time. */
  readonly fromMs?: DurationMs
  readonly toMs?: DurationMs
  /**
   * Probability of including each task, 0 < sample <= 1. It depends on seed and id alone, so a smaller sample
   * is a subset of a larger one.
   */
  readonly sample?: number
  /** Default 0. */
  readonly seed?: Seed
  /** Excludes tasks with more GPUs. */
  readonly maxGpus?: number
  /**
   * Factor of the time between arrivals (0.01: a hundred times as dense). Durations and work do not change.
   */
  readonly timeScale?: number
  /** Arrivals keep their time in the trace; otherwise fromMs becomes 0. */
  readonly keepOffset?: boolean
}

export const DEFAULT_SELECTION_SEED: Seed = 0

/** Why a task was not selected; the first reason that applies. */
export type UnselectedReason = 'outside_window' | 'too_many_gpus' | 'not_sampled'

interface Selectable {
  readonly id: string
  readonly at: DurationMs
  readonly gpus: number
  readonly cancel_at: DurationMs | null
}

/**
 * Returns the selection as a function: the task with its new times (the same object if nothing changes), or
 * the reason for its exclusion. `at` becomes round((at - fromMs) * timeScale); the distance of `cancel_at`
 * from it does not change. Throws TraceError if an option is out of range.
 */
export function createSelection(
  options: TraceSelection,
): <T extends Selectable>(task: T) => T | UnselectedReason {
  checkOptions(options)
  const {
    fromMs = 0,
    toMs = Infinity,
    sample = 1,
    seed = DEFAULT_SELECTION_SEED,
    maxGpus = Infinity,
    timeScale = 1,
    keepOffset = false,
  } = options
  const zeroMs = keepOffset ? 0 : fromMs
  const keepsTimes = zeroMs === 0 && timeScale === 1
  return (task) => {
    if (task.at < fromMs || task.at >= toMs) return 'outside_window'
    if (task.gpus > maxGpus) return 'too_many_gpus'
    if (sample < 1 && seededStream(seed, `sample/${task.id}`)() >= sample) return 'not_sampled'
    if (keepsTimes) return task
    const at = Math.round((task.at - zeroMs) * timeScale)
    if (!Number.isSafeInteger(at))
      throw new TraceError(
        { field: 'time_scale' },
        `${timeScale} puts task ${task.id} later than can be counted in ms`,
      )
    return { ...task, at, cancel_at: task.cancel_at === null ? null : at + (task.cancel_at - task.at) }
  }
}

/**
 * The selected tasks of a stream, one by one. `onUnselected` is called with each of the others. Throws
 * TraceError.
 */
export async function* selectTasks<T extends Selectable>(
  tasks: AsyncIterable<T> | Iterable<T>,
  options: TraceSelection,
  onUnselected: (reason: UnselectedReason) => void = () => {},
): AsyncGenerator<T> {
  const select = createSelection(options)
  for await (const task of tasks) {
    const selected = select(task)
    if (typeof selected === 'string') onUnselected(selected)
    else yield selected
  }
}

function checkOptions({ fromMs, toMs, sample, maxGpus, timeScale }: TraceSelection): void {
  requireWhole('from', fromMs, 0)
  requireWhole('to', toMs, (fromMs ?? 0) + 1)
  requireWhole('max_gpus', maxGpus, 1)
  if (sample !== undefined && !(sample > 0 && sample <= 1))
    throw new TraceError({ field: 'sample' }, `must be above 0 and at most 1, is ${sample}`)
  if (timeScale !== undefined && !(timeScale > 0 && timeScale < Infinity)) {
    throw new TraceError({ field: 'time_scale' }, `must be a finite number above 0, is ${timeScale}`)
  }
}

function requireWhole(field: string, value: number | undefined, least: number): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= least)) return
  throw new TraceError({ field }, `must be a whole number of ${least} or more, is ${value}`)
}
