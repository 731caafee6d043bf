/** Puts a pending task on hold, and releases it (semantics 4, HELD). */
import type { Instant } from '../../../../protocol/units.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { Answer } from '../../../model/command.ts'
import { mayQueue } from '../../../model/placement.ts'
import { tryAgain } from '../../apply/lifecycle/start-tries.ts'
import { dropEntry } from '../../apply/lifecycle/entries.ts'
import type { LiveTask } from '../../../state/facts.ts'

/** Excludes the task from placement; VRAM reserved for it is released at once. Idempotent. */
export function holdTask(c: Cluster, id: string, now: Instant): Answer<LiveTask> {
  const task = c.tasks.get(id)
  if (task === undefined) return { ok: false, refusal: { code: 'not_found', what: 'task', id } }
  if (task.placement !== null)
    return conflict(
      `task ${id} is ${task.state}; only a pending task can be put on hold: swap it out or requeue it`,
    )
  if (task.isHeld) return { ok: true, value: task }
  task.isHeld = true
  if (task.placementEntry !== null) dropEntry(c, task.placementEntry)
  c.dequeue(task)
  c.waiting.end(task, now)
  task.isFeasible = false
  c.eventLog.taskEvent(now, 'task_held', task, null, {})
  return { ok: true, value: task }
}

/**
 * The wait starts now: time on hold counts neither for aging nor for a reservation. Its position in its class
 * stays.
 */
export function releaseTask(c: Cluster, id: string, now: Instant): Answer<LiveTask> {
  const task = c.tasks.get(id)
  if (task === undefined) return { ok: false, refusal: { code: 'not_found', what: 'task', id } }
  if (task.placement !== null) return conflict(`task ${id} is ${task.state}; it is not on hold`)
  if (!task.isHeld) {
    tryAgain(c, task, 'released', true, now)
    return { ok: true, value: task }
  }
  task.isHeld = false
  task.pendingSince = now
  if (mayQueue(task)) c.enqueue(task, now)
  c.waiting.begin(task, now)
  c.eventLog.taskEvent(now, 'task_released', task, null, {})
  tryAgain(c, task, 'released', true, now)
  return { ok: true, value: task }
}

function conflict(detail: string): Answer<never> {
  return { ok: false, refusal: { code: 'conflict', detail } }
}
