/** Refuses at once a growth that no swap can make room for (semantics 1, "growth"). */
import type { Instant, Mib } from '../../../../protocol/units.ts'
import { largestEverMib } from '../../../policy/placement/feasible.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { noteGrowthTooLarge } from '../../apply/decision-log.ts'
import type { LivePlacement } from '../../../state/facts.ts'
import { dropEntry } from '../../apply/lifecycle/entries.ts'

/** Returns true if `mib` exceeds P − R on some GPU of the task. */
export function isLargerThanGpu({ gpus }: LivePlacement, mib: Mib): boolean {
  return gpus.some((gpu) => mib > largestEverMib(gpu))
}

/**
 * The task keeps its VRAM. An earlier request that still waits is refused too: the server holds both in one
 * line.
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
