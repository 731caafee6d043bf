/** A growth that no swap can make room for is refused at once (semantics 1, "growth"). */
import type { Instant, Mib } from '../../../protocol/units.ts'
import { largestEverMib } from '../../scheduler/feasible.ts'
import type { Cluster } from '../cluster.ts'
import { noteGrowthTooLarge } from '../explain/decision-log.ts'
import type { LivePlacement } from '../live.ts'
import { dropEntry } from './entries.ts'

/** Returns true when some GPU of the task is smaller than `mib` beside its safety reserve (P − R). */
export function isLargerThanGpu({ gpus }: LivePlacement, mib: Mib): boolean {
  return gpus.some((gpu) => mib > largestEverMib(gpu))
}

/**
 * The task keeps what it has; an earlier request that still waits is refused with this one, as the server
 * holds them in one line.
 */
export function refuseTooLarge(c: Cluster, placement: LivePlacement, mib: Mib, now: Instant): void {
  const { task, node, attempt, demandMib } = placement
  placement.heldGrowth = null
  if (placement.entry?.kind === 'growth') dropEntry(c, placement.entry)
  c.eventLog.taskEvent(now, 'growth_refused', task, node.id, { attempt, reason: 'NEVER_FITS' })
  noteGrowthTooLarge(c, placement, mib, now)
  c.eventLog.transaction.effects.push({
    kind: 'refuse_growth',
    nodeId: node.id,
    taskId: task.spec.id,
    attempt,
    mib: demandMib,
    reason: 'NEVER_FITS',
  })
}
