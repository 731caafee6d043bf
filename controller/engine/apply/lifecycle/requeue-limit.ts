/**
 * `max_requeues`: a task whose attempts keep ending soon after their start is restarted with growing delays,
 * and not forever (safety 3). Attempts taken back by an operator or a drain do not count, nor do longer ones.
 */
import type { DurationMs, Instant } from '../../../../protocol/units.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { LivePlacement } from '../../../state/facts.ts'
import { finish, returnToPending } from './transitions.ts'
import { doubled } from './doubled.ts'
import { planNextTry, emitPause } from './start-tries.ts'

/** An attempt that ends within this time of its start counts. */
const SOON_MS: DurationMs = 10 * 60_000
const FIRST_DELAY_MS: DurationMs = 10_000
const MAX_DELAY_MS: DurationMs = 10 * 60_000

/** The attempt is lost, and its task may be requeued. */
export function requeueLost(c: Cluster, placement: LivePlacement, because: string, now: Instant): void {
  const { task, startedAt } = placement
  if (startedAt === null || now - startedAt >= SOON_MS) return returnToPending(c, placement, because, now)
  const { maxRequeues } = task.spec
  const earlyEnds = task.trouble.earlyEnds + 1
  if (maxRequeues !== null && earlyEnds > maxRequeues) {
    const reason =
      `its attempts ended within 10 minutes of their start ${earlyEnds} times; ` +
      `max_requeues is ${maxRequeues}`
    return finish(c, task, { state: 'failed', code: 'requeue_limit', exitCode: null, reason }, now)
  }
  const until = now + doubled(FIRST_DELAY_MS, earlyEnds, MAX_DELAY_MS)
  task.trouble = { ...task.trouble, earlyEnds, pause: { reason: 'REQUEUE_DELAY', since: now, until } }
  returnToPending(c, placement, because, now)
  emitPause(c, task, now)
  planNextTry(c, task)
}
