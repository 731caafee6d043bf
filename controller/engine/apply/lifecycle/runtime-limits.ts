/**
 * `max_runtime_seconds`: an attempt that reaches it is ended, and its task has failed. Time counts from the
 * start of the attempt, swapped out or not: the limit bounds the use of commit room
 * (docs/decisions/0032-max-runtime-from-the-start.md).
 */
import type { Instant } from '../../../../protocol/units.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { LivePlacement } from '../../../state/facts.ts'
import type { Stopping } from '../../../model/placement.ts'
import { stopEffect, stopGraceOf } from '../node-commands.ts'
import { askForSwapIn } from './entries.ts'
import { noteStop } from './stops.ts'

/** The attempt has started, or was restored. Call when `startedAt` is set. */
export function startRuntimeLimit(c: Cluster, placement: LivePlacement): void {
  const { startedAt, task } = placement
  const { maxRuntimeMs } = task.spec
  if (maxRuntimeMs === null || startedAt === null) return
  c.runtimeLimits.set(
    placement,
    c.wake(startedAt + maxRuntimeMs, (now) => overrun(c, placement, now)),
  )
}

/** Runs when its timer is due. */
export function overrun(c: Cluster, placement: LivePlacement, now: Instant): void {
  c.runtimeLimits.delete(placement)
  const { maxRuntimeMs } = placement.task.spec
  if (maxRuntimeMs !== null) endOverrun(c, placement, maxRuntimeMs, now)
}

/** The attempt is over. */
export function forgetRuntime(c: Cluster, placement: LivePlacement): void {
  if (placement.task.spec.maxRuntimeMs === null) return
  c.runtimeLimits.get(placement)?.()
  c.runtimeLimits.delete(placement)
}

/** Orders the server to end the attempt. An earlier cancellation takes precedence. */
function endOverrun(c: Cluster, placement: LivePlacement, maxRuntimeMs: number, now: Instant): void {
  if (placement.stopping?.then === 'cancelled') return
  const reason = `max_runtime_seconds (${maxRuntimeMs / 1000}) is over`
  const graceMs = stopGraceOf(placement.task, c.policy)
  const since = placement.stopping?.since ?? now
  const stopping: Stopping = {
    then: 'failed',
    reason,
    endReason: reason,
    code: 'max_runtime',
    since,
    graceMs,
  }
  noteStop(c, placement, stopping, now)
  c.eventLog.transaction.effects.push(stopEffect(placement, stopping))
  c.eventLog.taskEvent(now, 'task_updated', placement.task, placement.node.id, {
    stopping: true,
    because: 'max_runtime_seconds',
  })
  if (graceMs > 0 && placement.residency === 'swapped_out') askForSwapIn(c, placement, now)
}
