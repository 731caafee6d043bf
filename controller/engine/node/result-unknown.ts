import type { Instant } from '../../../protocol/units.ts'
import type { Cluster } from '../cluster.ts'
import type { LivePlacement } from '../live.ts'
import { finish } from '../transitions.ts'
import { supersede } from './quarantine.ts'

/**
 * The end of the attempt is in the part of the history that is lost: the task ends, result unknown, and is
 * never requeued by itself. A later attempt that runs elsewhere is the task's.
 */
export function endUnknown(c: Cluster, placement: LivePlacement, now: Instant): void {
  if (!supersede(c, placement, now))
    finish(c, placement.task, { state: 'lost', code: 'result_unknown', exitCode: null, reason: null }, now)
}
