import { byCodeUnits } from '../../structures/order.ts'
import type { Instant } from '../../../protocol/units.ts'
import type { Policy } from '../../model/config.ts'
import type { Task } from '../../model/placement.ts'

/**
 * The class of a task in the queue: its priority, lifted by one for each `queueAgingMs` it has waited, at
 * most to P0.
 */
export function queueClass(task: Task, policy: Policy, now: Instant): number {
  if (policy.queueAgingMs === null) return task.spec.priority
  return Math.max(0, task.spec.priority - Math.floor((now - task.pendingSince) / policy.queueAgingMs))
}

/** When it is lifted next; null if never. */
export function nextLiftAt(task: Task, policy: Policy, now: Instant): Instant | null {
  if (policy.queueAgingMs === null || queueClass(task, policy, now) === 0) return null
  return (
    task.pendingSince +
    (Math.floor((now - task.pendingSince) / policy.queueAgingMs) + 1) * policy.queueAgingMs
  )
}

/** A task with its class in the queue. */
export interface Queued {
  readonly task: Task
  readonly queueClass: number
}

/**
 * Order of pending tasks (semantics 4).
 * 1. Higher priority class, including aging.
 * 2. Earlier submission.
 * 3. Task id, so that the order is total.
 */
export function byQueueOrder(a: Queued, b: Queued): number {
  return (
    a.queueClass - b.queueClass ||
    a.task.spec.seq - b.task.spec.seq ||
    byCodeUnits(a.task.spec.id, b.task.spec.id)
  )
}
