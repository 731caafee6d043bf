/** Refuses at once a growth that can never be granted (semantics 1, "growth"). */
import type { Instant, Mib } from '../../../../protocol/units.ts'
import { largestEverMib } from '../../../policy/placement/feasible.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { noteGrowthTooLarge } from '../../apply/decision-log.ts'
import type { NeverGranted } from '../../apply/decision-words.ts'
import type { LivePlacement } from '../../../state/facts.ts'
import { dropEntry } from '../../apply/lifecycle/entries.ts'

/**
 * NEVER_FITS: `mib` exceeds P − R on some GPU of the task. VRAM_LIMIT: it exceeds the task's own limit.
 * Null: it may be granted.
 */
export function whyNeverGranted({ task, gpus }: LivePlacement, mib: Mib): NeverGranted | null {
  const limitMib = task.spec.limits?.vramMib ?? null
  if (limitMib !== null && mib > limitMib) return 'VRAM_LIMIT'
  return gpus.some((gpu) => mib > largestEverMib(gpu)) ? 'NEVER_FITS' : null
}

/**
 * The task keeps its VRAM. An earlier request that still waits is refused too: the server holds both in one
 * line.
 */
export function refuseTooLarge(
  c: Cluster,
  placement: LivePlacement,
  mib: Mib,
  reason: NeverGranted,
  now: Instant,
): void {
  const { task, node, attempt, demandMib } = placement
  placement.heldGrowth = null
  if (placement.entry?.kind === 'growth') dropEntry(c, placement.entry)
  c.eventLog.taskEvent(now, 'growth_refused', task, node.id, { attempt, reason })
  noteGrowthTooLarge(c, placement, mib, reason, now)
  c.eventLog.transaction.effects.push({
    kind: 'refuse_growth',
    nodeId: node.id,
    taskId: task.spec.id,
    attempt,
    mib: demandMib,
    reason,
  })
}
