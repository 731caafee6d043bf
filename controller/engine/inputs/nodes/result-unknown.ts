import type { Instant } from '../../../../protocol/units.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { LivePlacement } from '../../../state/facts.ts'
import { finish } from '../../apply/lifecycle/transitions.ts'
import { supersede } from './quarantine.ts'

/**
 * The end of the attempt is in the lost part of the history: the task ends with result unknown and is never
 * requeued automatically. A later attempt that runs elsewhere becomes the task's attempt.
 */
export function endUnknown(c: Cluster, placement: LivePlacement, now: Instant): void {
  if (!supersede(c, placement, now))
    finish(c, placement.task, { state: 'lost', code: 'result_unknown', exitCode: null, reason: null }, now)
}
