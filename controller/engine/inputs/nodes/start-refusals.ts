/**
 * Starts that a node refused because it cannot run the task, or any task (safety 3). The task has not failed:
 * the attempt is over, and the task waits for another node or, if all have refused it, for a change.
 */
import type { StartRefused } from '../../../../protocol/message-fields.ts'
import type { PreparationReport } from '../../../../protocol/preparing.ts'
import type { DurationMs, Instant } from '../../../../protocol/units.ts'
import type { TaskEnd } from '../../../model/end-reason.ts'
import { imageToRun } from '../../../model/image-to-run.ts'
import { IMAGE_NOT_FOUND, isOfTheNode } from '../../../model/start-refusal.ts'
import type { StartRefusal, StartTrouble } from '../../../model/start-refusal.ts'
import { largestEverMib, mayRunOn } from '../../../policy/placement/feasible.ts'
import { searchDemandMib } from '../../../policy/placement/shape.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { LiveNode, LivePlacement, LiveTask } from '../../../state/facts.ts'
import { supersede } from './quarantine.ts'
import { dropPreparation } from '../../apply/lifecycle/preparations.ts'
import { finish, returnToPending } from '../../apply/lifecycle/transitions.ts'
import { noteHostRefusal } from '../../apply/lifecycle/auto-cordon.ts'
import { doubled } from '../../apply/lifecycle/doubled.ts'
import { planNextTry, emitPause } from '../../apply/lifecycle/start-tries.ts'

/** Number of refusals because of the task itself after which it waits. */
const REFUSALS_TO_WAIT = 3
const FIRST_WAIT_MS: DurationMs = 10 * 60_000
const MAX_WAIT_MS: DurationMs = 6 * 3_600_000
/**
 * A node that refused for reasons of its own may be tried again after this time, doubled with each refusal.
 */
const FIRST_PUT_OFF_MS: DurationMs = 10_000
const MAX_PUT_OFF_MS: DurationMs = 10 * 60_000

/** The node refused the attempt; no stop was ordered. */
export function refuseStart(
  c: Cluster,
  placement: LivePlacement,
  refused: StartRefused,
  detail: string,
  now: Instant,
): void {
  const { task, node, attempt } = placement
  if (isOfTheNode(refused))
    noteHostRefusal(c, node, { taskId: task.spec.id, attempt }, refused.code, detail, now)
  if (supersede(c, placement, now)) return
  const trouble = withRefusal(task.trouble, node, refused, detail, now)
  const isWait = mustWait(c, task, trouble)
  const end = isWait ? endWithoutImage(task, trouble, refused, detail) : null
  if (end !== null) return finish(c, task, end, now)
  task.trouble = isWait ? waiting(trouble, now) : trouble
  returnToPending(c, placement, refused.code, now, { cause: refused.cause, detail })
  if (task.trouble.pause !== null) emitPause(c, task, now)
  planNextTry(c, task)
}

/** The node could not prepare the task, which has no attempt yet. */
export function refusePreparation(
  c: Cluster,
  task: LiveTask,
  node: LiveNode,
  { attempt, start_refused: refused = NOT_SAID, detail = refused.code }: PreparationReport,
  now: Instant,
): void {
  if (isOfTheNode(refused))
    noteHostRefusal(c, node, { taskId: task.spec.id, attempt }, refused.code, detail, now)
  const trouble = withRefusal(task.trouble, node, refused, detail, now)
  const isWait = mustWait(c, task, trouble)
  const end = isWait ? endWithoutImage(task, trouble, refused, detail) : null
  if (end !== null) return finish(c, task, end, now)
  task.trouble = isWait ? waiting(trouble, now) : trouble
  dropPreparation(c, task, node, now)
  c.eventLog.dirtyTask(task)
  if (isWait) {
    c.dequeue(task)
    c.waiting.end(task, now)
    task.isFeasible = false
    emitPause(c, task, now)
  }
  planNextTry(c, task)
}

const NOT_SAID: StartRefused = { cause: 'passing', code: 'not_prepared' }

/**
 * An image that no registry has does not appear by waiting: the task fails. One that could not be had for
 * another reason is tried again, after `max_requeues` waits for the last time (docs/decisions/0124). Null: it
 * waits.
 */
function endWithoutImage(
  { spec: { maxRequeues } }: LiveTask,
  { waits, refusals }: StartTrouble,
  { code }: StartRefused,
  detail: string,
): TaskEnd | null {
  if (maxRequeues === null) return null
  const end = { state: 'failed', code: 'image_not_available', exitCode: null } as const
  const ofTask = refusals.filter(({ cause }) => cause === 'task')
  if (ofTask.every((refusal) => refusal.code === IMAGE_NOT_FOUND)) return { ...end, reason: detail }
  if (code !== 'image_not_available' || waits < maxRequeues) return null
  return { ...end, reason: `${detail}; tried again ${waits} times, as max_requeues allows` }
}

/** Returns true if a node that has the image could take the task, and has not refused it. */
function isImageElsewhere(c: Cluster, task: LiveTask, refusing: ReadonlySet<string>): boolean {
  const image = imageToRun(task)
  if (image === null) return false
  const { pool } = c.queueFor(task.spec)
  for (const node of pool.nodes.keys())
    if (node.images.includes(image) && !refusing.has(node.id) && couldTake(node, task)) return true
  return false
}

function withRefusal(
  trouble: StartTrouble,
  node: LiveNode,
  refused: StartRefused,
  detail: string,
  now: Instant,
): StartTrouble {
  const before = trouble.refusals.find(({ nodeId }) => nodeId === node.id)
  const times = (before?.times ?? 0) + 1
  const until =
    refused.cause === 'task'
      ? null
      : now + (refused.cause === 'host' ? doubled(FIRST_PUT_OFF_MS, times, MAX_PUT_OFF_MS) : 0)
  const { cause, code } = refused
  const refusal: StartRefusal = {
    nodeId: node.id,
    nodeName: node.name,
    cause,
    code,
    detail,
    at: now,
    until,
    times,
  }
  return {
    ...trouble,
    refusals: [...trouble.refusals.filter((each) => each !== before), refusal],
    refusedCount: trouble.refusedCount + (cause === 'task' ? 1 : 0),
  }
}

/**
 * Returns true after three refusals because of the task itself, or one from every node that could ever take
 * it.
 */
function mustWait(c: Cluster, task: LiveTask, { refusals, refusedCount }: StartTrouble): boolean {
  const refusing = new Set(refusals.filter(({ cause }) => cause === 'task').map(({ nodeId }) => nodeId))
  if (refusedCount >= REFUSALS_TO_WAIT) return !isImageElsewhere(c, task, refusing)
  if (refusing.size === 0) return false
  const { pool } = c.queueFor(task.spec)
  for (const node of pool.nodes.keys()) if (!refusing.has(node.id) && couldTake(node, task)) return false
  return true
}

/** Returns true if the node could take the task when empty and up. */
function couldTake(node: LiveNode, task: LiveTask): boolean {
  if (node.isCordoned || !mayRunOn(task, node)) return false
  const demandMib = searchDemandMib(task.spec)
  return node.gpus.filter((gpu) => largestEverMib(gpu) >= demandMib).length >= task.spec.gpuCount
}

function waiting(trouble: StartTrouble, now: Instant): StartTrouble {
  const until = now + doubled(FIRST_WAIT_MS, trouble.waits + 1, MAX_WAIT_MS)
  return { ...trouble, waits: trouble.waits + 1, pause: { reason: 'START_REFUSED', since: now, until } }
}
