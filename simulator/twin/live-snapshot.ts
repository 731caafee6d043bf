/**
 * The live cluster as a scenario for people: one estimate of the unknown facts, and a description of its
 * assumptions.
 */
import type { ClusterSnapshot, RecentPast } from '../../controller/ports/twin.ts'
import type { TaskRecord } from '../../controller/ports/store.ts'
import { seededStream } from '../kernel/seeded-random.ts'
import type { TaskItem } from '../scenario/scenario.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { lazySnapshotOf } from '../snapshot/snapshot.ts'
import type { Work } from '../trace/trace-format.ts'
import { guessWorkLeft } from './draw-work.ts'
import { assumedSpeeds, learnedModels } from '../calibration/learned-models.ts'
import { aloneMsSoFar, isModel, workloadModelOf } from './workload-model.ts'

/** Maximum number of stretches of one task in a file. */
const MAX_STRETCHES = 12
const HOUR_MS = 3_600_000

export interface LiveSnapshot {
  /** Its tasks can be read once. */
  readonly snapshot: Snapshot<Iterable<TaskItem>>
  readonly description: string
}

export function snapshotOfLive(image: ClusterSnapshot, past: RecentPast): LiveSnapshot {
  const model = workloadModelOf(image, past)
  const workOf = (task: TaskRecord): Work =>
    isModel(model)
      ? guessWorkLeft(model, task, image.at, seededStream(1, `twin/work/${task.id}`), MAX_STRETCHES)
      : asLongAgain(task, image)
  const gpuModelOf = learnedModels(past.speeds)
  const snapshot = lazySnapshotOf(image, {
    workLeftOf: (task) => ({ work: workOf(task), doneUs: 0 }),
    gpuModelOf: ({ id }) => gpuModelOf(id),
  })
  const { leftOut } = snapshot
  const words = [
    `The live cluster as of ${new Date(image.at).toISOString()}. What each task has left to do is a guess: `,
    isModel(model)
      ? `${model.assumes[0]}; ${model.assumes[2]}.`
      : 'it stays as long again as it has been there, an hour at least, and goes on as it does ' +
        `now (${model.detail}).`,
    ` Assumed: ${assumedSpeeds(past.speeds)}; nothing arrives later.`,
    leftOut.nodes + leftOut.tasks > 0
      ? ` Left out: nodes that are not up (${leftOut.nodes}), ` +
        `tasks on them or being stopped (${leftOut.tasks}).`
      : '',
    leftOut.swapsSettled > 0 ? ` Swaps that were under way count as done (${leftOut.swapsSettled}).` : '',
  ]
  return { snapshot, description: words.join('') }
}

function asLongAgain(task: TaskRecord, { at }: ClusterSnapshot): Work {
  const ms = Math.max(HOUR_MS, aloneMsSoFar(task, at))
  return task.placement?.wantsGpu === false && task.placement.startedAt !== null
    ? { kind: 'phases', phases: [[0, ms]] }
    : { kind: 'duration', ms }
}
