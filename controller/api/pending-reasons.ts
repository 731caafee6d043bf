/**
 * What pending tasks wait for, counted: bounded in tasks and in time, and so told with how many were looked at, because every explanation costs a look at the cluster, 2 ms of 10,000 GPUs where
 * many wait in front.
 */
import type { Instant } from '../../protocol/units.ts'
import type { Views } from '../engine/views.ts'
import { WAIT_REASONS, type WaitReason } from '../scheduler/explain.ts'
import type { SummaryBody } from './schema/summary.ts'

/** How many pending tasks are looked at, in order of submission. */
export const PENDING_LOOKED_AT = 1_000

/** Explaining stops after so long, but never before the first. */
const BUDGET_MS = 20

/** For how long an answer is given again, while as many tasks are pending. */
const FRESH_MS = 1_000

export type PendingByReason = SummaryBody['pending_by_reason']

/**
 * Counts, and remembers the answer for a second: many open pages ask for the same.
 * @param elapsedMs a clock that measures how long explaining takes.
 */
export function createPendingReasons(views: Views, elapsedMs: () => number = () => performance.now()): () => PendingByReason {
  let known: { readonly at: Instant; readonly answer: PendingByReason } | null = null
  return () => {
    const at = views.now()
    if (known !== null && at - known.at < FRESH_MS && at >= known.at && known.answer.of === views.counts().pending) return known.answer
    known = { at, answer: countByReason(views, elapsedMs) }
    return known.answer
  }
}

function countByReason(views: Views, elapsedMs: () => number): PendingByReason {
  const until = elapsedMs() + BUDGET_MS
  const tasksOf = new Map<WaitReason, number>()
  let counted = 0
  for (const task of views.openTasks()) {
    if (counted === PENDING_LOOKED_AT) break
    if (task.state !== 'pending') continue
    if (counted > 0 && elapsedMs() > until) break
    counted += 1
    const reason = views.explain(task)?.primary.reason
    if (reason !== undefined) tasksOf.set(reason, (tasksOf.get(reason) ?? 0) + 1)
  }
  const reasons = WAIT_REASONS.flatMap((reason) => {
    const tasks = tasksOf.get(reason)
    return tasks === undefined ? [] : [{ reason, tasks }]
  })
  return { counted, of: views.counts().pending, reasons }
}
