/**
 * An event reports the result of an attempt that was given up. It ends the task unless a later attempt has
 * started (R8).
 */
import type { AttemptRef, FinishedEvent } from '../../../../protocol/messages.ts'
import type { Instant } from '../../../../protocol/units.ts'
import type { TaskEnd } from '../../../model/end-reason.ts'
import { ownEnd } from '../../../model/end-reason.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { orderStop } from '../../apply/lifecycle/stops.ts'
import type { LiveNode, LiveTask } from '../../../state/facts.ts'
import { finish } from '../../apply/lifecycle/transitions.ts'
import { awaitResult, endWaitForResult } from '../../apply/lifecycle/start-tries.ts'
import { liftRefusal, noteRefusal } from '../../apply/lifecycle/refusals.ts'

/** Results that are not awaited, such as duplicates, change nothing. */
export function applyLateResult(c: Cluster, nodeId: string, event: FinishedEvent, now: Instant): void {
  const task = c.tasks.get(event.task_id)
  const awaited = task?.givenUp.find((one) => one.attempt === event.attempt && one.nodeId === nodeId)
  if (task === undefined || awaited === undefined) return
  task.givenUp = task.givenUp.filter((one) => one !== awaited)
  c.eventLog.dirtyTask(task)
  // The node owes no result anymore: it may get another attempt.
  liftRefusal(c, task, nodeId)
  const { outcome, exit_code: exitCode, detail, attempt } = event
  if (outcome !== 'completed' && outcome !== 'failed') return endWaitForResult(c, task, now)
  const isUsed = !awaited.isOvertaken && isOpenToIt(task)
  c.eventLog.taskEvent(now, 'task_late_result', task, nodeId, {
    attempt,
    outcome,
    exit_code: exitCode,
    reason: detail,
    is_used: isUsed,
  })
  if (isUsed) endWith(c, task, { ...ownEnd(outcome, exitCode, detail), attempt }, now)
}

/** The node repeats its result with every heartbeat. */
const AWAITED_HEARTBEATS = 3

/**
 * The node reports that the attempt has ended and that its result will follow. Until its next snapshot it
 * would refuse another attempt of the task; on another node the task could run although it is completed.
 */
export function noteAnnounced(
  c: Cluster,
  node: LiveNode,
  { task_id, attempt }: AttemptRef,
  now: Instant,
): void {
  const task = c.tasks.get(task_id)
  if (task === undefined || task.placement !== null) return
  if (!task.givenUp.some((one) => one.attempt === attempt && one.nodeId === node.id && !one.isOvertaken))
    return
  noteRefusal(c, task, node.id, node.snapshotSeq)
  awaitResult(c, task, now + AWAITED_HEARTBEATS * c.policy.heartbeatMs, now)
}

/**
 * Returns true if the task waits, or if its next attempt has not started. A cancelled task stays cancelled.
 */
function isOpenToIt({ placement }: LiveTask): boolean {
  if (placement === null) return true
  return (
    placement.startedAt === null && (placement.stopping === null || placement.stopping.then === 'pending')
  )
}

/** A later attempt that was ordered and has no confirmed start is stopped first. */
function endWith(c: Cluster, task: LiveTask, end: TaskEnd, now: Instant): void {
  const { placement } = task
  if (placement === null) return finish(c, task, end, now)
  const then = end.state === 'completed' ? 'completed' : 'failed'
  const reason = `attempt ${end.attempt ?? 0} has ended, and its result arrived late`
  orderStop(
    c,
    placement,
    { then, reason, endReason: end.reason, code: end.code, exitCode: end.exitCode },
    now,
  )
}
