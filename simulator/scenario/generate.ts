/** A scenario's workload as one stream of submissions. */
import type { Random } from '../../controller/ports/random.ts'
import type { Work } from '../trace/trace-format.ts'
import { type ArrivalSource, makeSource } from './arrivals.ts'
import { generatedIdTest } from './build-workload.ts'
import { activityOf } from './draw-duration.ts'
import { generatedArrivals } from './generated-arrivals.ts'
import { mergeArrivals } from './merge-arrivals.ts'
import type { Scenario, SimTask, TaskItem, TaskStart, WorkloadItem } from './scenario.ts'
import { type IdTaken, traceArrivals } from './trace-arrivals.ts'

/**
 * The same scenario and seed produce the same tasks on every machine. Tasks at one instant follow the order
 * of the workload list. Each item draws from streams named after it, so editing one item does not change the
 * tasks of the others.
 */
export function workloadOf({ workload }: Pick<Scenario, 'workload'>, random: Random): ArrivalSource {
  const isTaken = idTest(workload)
  return mergeArrivals(
    workload
      .filter((item) => item.kind !== 'task' || item.state === undefined)
      .map((item) => {
        switch (item.kind) {
          case 'trace':
            return traceArrivals(item, random, isTaken)
          case 'generate':
            return generatedArrivals(item, random)
          case 'task':
            return singleArrival(item, random)
        }
      }),
  )
}

/** Tasks present at the start, in the order of the file. */
export function startTasksOf({ workload }: Pick<Scenario, 'workload'>, random: Random): StartTask[] {
  return workload.flatMap((item) => {
    const state = item.kind === 'task' ? item.state : undefined
    return item.kind !== 'task' || state === undefined ? [] : [{ ...simTaskOf(item, random), state }]
  })
}

/** A task present at the start; `work` is its remaining work. */
export interface StartTask extends SimTask {
  readonly state: TaskStart
}

function singleArrival(item: TaskItem, random: Random): ArrivalSource {
  let isOver = false
  return makeSource(() => {
    if (isOver) return null
    isOver = true
    return simTaskOf(item, random)
  })
}

function simTaskOf(item: TaskItem, random: Random): SimTask {
  return {
    at: item.atMs,
    request: item.request,
    work: workOf(item, random),
    allocSteps: item.allocSteps,
    cancelAt: item.cancelAtMs,
    ...(item.stopTakesMs === undefined ? {} : { stopTakesMs: item.stopTakesMs }),
  }
}

function workOf({ request, work }: TaskItem, random: Random): Work {
  if (work.kind !== 'residence') return work
  return activityOf(work.activity)(work.ms, random.stream(`workload/task/${request.id}/activity`))
}

/** Ids are unique within the file; a trace may still contain an id of another item. */
function idTest(workload: readonly WorkloadItem[]): IdTaken {
  const taskIds = new Set(workload.filter((item) => item.kind === 'task').map((item) => item.request.id))
  const makerOf = generatedIdTest(workload)
  return (id) => {
    if (taskIds.has(id)) return 'the ID of a task of the workload'
    const maker = makerOf(id)
    return maker === null ? null : `an ID that the generated tasks of ${maker} have`
  }
}
