/** What pending tasks wait for, counted: bounded, because every explanation costs a look at the cluster. */
import type { Instant } from '../../protocol/units.ts'
import type { Views } from '../engine/views.ts'
import { WAIT_REASONS, type WaitReason } from '../scheduler/explain.ts'
import type { SummaryBody } from './schema/summary.ts'

/** How many pending tasks are looked at, in order of submission. */
export const PENDING_LOOKED_AT = 1_000

/** For how long an answer is given again, while as many tasks are pending. */
const FRESH_MS = 1_000

export type PendingByReason = SummaryBody['pending_by_reason']

/** Counts, and remembers the answer for a second: many open pages ask for the same. */
export function createPendingReasons(views: Views): () => PendingByReason {
  let known: { readonly at: Instant; readonly answer: PendingByReason } | null = null
  return () => {
    const at = views.now()
    if (known !== null && at - known.at < FRESH_MS && at >= known.at && known.answer.of === views.counts().pending) return known.answer
    known = { at, answer: countByReason(views) }
    return known.answer
  }
}

function countByReason(views: Views): PendingByReason {
  const tasksOf = new Map<WaitReason, number>()
  let counted = 0
  for (const task of views.openTasks()) {
    if (counted === PENDING_LOOKED_AT) break
    if (task.state !== 'pending') continue
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
