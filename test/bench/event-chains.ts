/**
 * Times of the events of simulated tasks, recorded in a run, so that the bare loop can run the same events.
 */
import type { Event } from '../../controller/model/event.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { SimTask } from '../../simulator/scenario/scenario.ts'
import { stepsOf } from './work-steps.ts'

export interface Chains {
  /** Time between a task's arrival and the previous arrival. */
  readonly arrivalGaps: Float64Array
  /** Time from each event of a task to its next one (for the first: from its arrival), task by task. */
  readonly gaps: Float64Array
  /** Start index of each task's gaps; with one more at the end. */
  readonly starts: Int32Array
}

interface Recorded {
  readonly arrivedAt: Instant
  readonly steps: readonly DurationMs[]
  startedAt: Instant | null
  finishedAt: Instant | null
  readonly swapsAt: Instant[]
}

export class ChainRecorder {
  readonly #tasks = new Map<string, Recorded>()
  readonly #startMs: Instant

  constructor(startMs: Instant) {
    this.#startMs = startMs
  }

  arrived(task: SimTask): void {
    this.#tasks.set(task.request.id, {
      arrivedAt: this.#startMs + task.at,
      steps: stepsOf(task.work),
      startedAt: null,
      finishedAt: null,
      swapsAt: [],
    })
  }

  record(events: readonly Event[]): void {
    for (const event of events) {
      const task = event.taskId === null ? undefined : this.#tasks.get(event.taskId)
      if (task === undefined) continue
      if (event.kind === 'task_started') task.startedAt ??= event.at
      else if (event.kind === 'task_finished') task.finishedAt = event.at
      else if (event.kind === 'task_residency' && isSwapDone(event.data['residency']))
        task.swapsAt.push(event.at)
    }
  }

  chains(): Chains {
    const arrivalGaps: number[] = []
    const gaps: number[] = []
    const starts = [0]
    let lastArrival = this.#startMs
    for (const task of this.#tasks.values()) {
      arrivalGaps.push(task.arrivedAt - lastArrival)
      lastArrival = task.arrivedAt
      let last = task.arrivedAt
      for (const at of instantsOf(task)) {
        gaps.push(at - last)
        last = at
      }
      starts.push(gaps.length)
    }
    return {
      arrivalGaps: Float64Array.from(arrivalGaps),
      gaps: Float64Array.from(gaps),
      starts: Int32Array.from(starts),
    }
  }
}

function isSwapDone(residency: unknown): boolean {
  return residency === 'swapped_out' || residency === 'resident'
}

/**
 * In order of time. Activity changes are distributed over the run as over its work, stretched by the same
 * factor.
 */
function instantsOf({ steps, startedAt, finishedAt, swapsAt }: Recorded): number[] {
  if (startedAt === null || finishedAt === null)
    throw new Error('a recorded run continues until every task has finished')
  const aloneMs = steps.reduce((sum, ms) => sum + ms, 0)
  const instants = [startedAt, ...swapsAt, finishedAt]
  let doneMs = 0
  for (const ms of steps.slice(0, -1)) {
    doneMs += ms
    instants.push(Math.round(startedAt + ((finishedAt - startedAt) * doneMs) / aloneMs))
  }
  return instants.sort((a, b) => a - b)
}
