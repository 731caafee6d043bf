/**
 * What a node must prepare before a task starts there. No VRAM is committed meanwhile, so that other tasks
 * may take it; a task that several nodes have prepared without a start prepares within it, as on servers
 * without the feature (docs/decisions/0122).
 */
import { MAX_PREPARATIONS_PER_NODE } from '../../../protocol/limits.ts'
import type { TaskSpec } from '../../../protocol/task.ts'
import type { Node, Task } from '../../model/placement.ts'
import { imageToRun } from '../../model/image-to-run.ts'
import { preparationOn } from '../../model/preparation.ts'

/** Nodes that prepare one attempt of a task. Beyond it the task starts unprepared, so that its wait ends. */
const MAX_NODES_PER_TASK = 3

/** The task has an image or an uploaded folder. */
export function needsPreparing({ image = null, workdir = null }: TaskSpec): boolean {
  return image !== null || workdir !== null
}

/** The node has what the start needs, as far as known. */
export function isPreparedOn(task: Task, node: Node): boolean {
  if (preparationOn(task, node.id)?.state === 'prepared') return true
  const image = imageToRun(task)
  return (task.spec.workdir ?? null) === null && image !== null && node.images.includes(image)
}

/** The node is asked to prepare it instead of to start it. */
export function mustPrepare(task: Task, node: Node): boolean {
  if (!needsPreparing(task.spec) || !node.features.includes('prepare')) return false
  return !isPreparedOn(task, node) && task.preparations.length < MAX_NODES_PER_TASK
}

/** The node prepares as many tasks as it can hold: this one waits until one of them starts. */
export function lacksPreparingRoom(task: Task, node: Node): boolean {
  return node.preparationCount >= MAX_PREPARATIONS_PER_NODE && mustPrepare(task, node)
}
