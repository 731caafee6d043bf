/** Simulated runs as bars on one time axis, and their state at an instant. Pure. */
import type { RunResidencyBody } from '../../controller/api/simulations/schema.ts'
import type { BarKind, GanttBar } from './gantt-layout.ts'

export interface RunBar extends GanttBar {
  readonly task: string
}

const KINDS: Readonly<Record<RunResidencyBody['bars']['kind'][number], BarKind>> = {
  resident: 'active',
  moving: 'moving',
  out: 'out',
}

/** Bars of the first rows, in milliseconds since the start of the run. */
export function runBars({ tasks, bars }: RunResidencyBody, rows: number): readonly RunBar[] {
  return bars.gpu.flatMap((row, at) => {
    if (row >= rows) return []
    const task = tasks[bars.task[at] ?? -1] ?? ''
    const [from, to] = [(bars.from_seconds[at] ?? 0) * 1000, (bars.to_seconds[at] ?? 0) * 1000]
    return [{ row, laneKey: task, task, from, to, kind: KINDS[bars.kind[at] ?? 'moving'] }]
  })
}

export interface TaskCounts {
  readonly resident: number
  readonly moving: number
  readonly out: number
}

/** Number of tasks in each state at an instant; a task on several GPUs counts once. */
export function taskCountsAt({ bars }: RunResidencyBody, atSeconds: number): TaskCounts {
  const found = { resident: new Set<number>(), moving: new Set<number>(), out: new Set<number>() }
  bars.kind.forEach((kind, at) => {
    if ((bars.from_seconds[at] ?? 0) <= atSeconds && atSeconds < (bars.to_seconds[at] ?? 0))
      found[kind].add(bars.task[at] ?? -1)
  })
  return { resident: found.resident.size, moving: found.moving.size, out: found.out.size }
}

/**
 * The value of the interval that contains the instant; null: the run had ended before. @param ends in
 * ascending order
 */
export function valueAt(
  ends: readonly number[],
  values: readonly number[],
  atSeconds: number,
): number | null {
  const index = ends.findIndex((end) => end >= atSeconds)
  return index === -1 ? null : (values[index] ?? null)
}
