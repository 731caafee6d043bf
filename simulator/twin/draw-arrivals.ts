/** Draws future arrivals from a workload model: independent tasks like those of the recent past. */
import type { RandomStream } from '../../controller/ports/random.ts'
import type { TaskRecord } from '../../controller/ports/store.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { log } from '../kernel/exact-math.ts'
import { makeSource } from '../scenario/arrivals.ts'
import type { ArrivalSource } from '../scenario/arrivals.ts'
import type { SimTask, SimTaskRequest } from '../scenario/scenario.ts'
import { drawActivity, drawShare } from './draw-work.ts'
import { residenceOf } from './workload-model.ts'
import type { WorkloadModel } from './workload-model.ts'
import { DEFAULT_RUN_POLICY } from '../../protocol/task.ts'
import { requestOfSpec } from '../../protocol/task-body.ts'

const HOUR_MS = 3_600_000

/**
 * Arrivals of the next `untilMs`, by time since the start; the same stream yields the same arrivals. Ids are
 * `twin-0`, `twin-1`, …
 */
export function drawArrivals(model: WorkloadModel, untilMs: DurationMs, random: RandomStream): SimTask[] {
  const { seen, perHour } = model
  const tasks: SimTask[] = []
  if (seen.length === 0) return tasks
  for (let at = 0; ;) {
    at += Math.max(1, Math.round((-HOUR_MS / perHour) * log(1 - random())))
    if (at > untilMs) return tasks
    const { record, wantsShare } = seen[Math.floor(random() * seen.length)] as (typeof seen)[number]
    const stayMs = residenceOf(model, record.gpuCount).drawLeft(0, random)
    const work = drawActivity(model, stayMs, wantsShare ?? drawShare(model, random), null, random)
    tasks.push({
      at,
      request: requestOf(record, `twin-${tasks.length}`),
      work,
      allocSteps: [],
      cancelAt: null,
    })
  }
}

export function sourceOf(tasks: readonly SimTask[]): ArrivalSource {
  let next = 0
  return makeSource(() => tasks[next++] ?? null)
}

function requestOf(record: TaskRecord, id: string): SimTaskRequest {
  const { onNodeLoss } = record
  return { ...requestOfSpec(record), ...DEFAULT_RUN_POLICY, id, name: null, onNodeLoss }
}
