/** Work that was deferred while placements were paused. */
import type { Instant } from '../../../../protocol/units.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { settleAbsent } from './node-registry.ts'
import { placementsOn } from '../../../state/placements-on.ts'
import { pauseOf } from '../../../state/placement-pause.ts'
import { supersede } from './quarantine.ts'

/** Returns true if the pause is over since the last call. */
export function settlePause(c: Cluster, now: Instant): boolean {
  const isPaused = pauseOf(c) !== null
  const isOver = c.wasPaused && !isPaused
  c.wasPaused = isPaused
  if (!isOver) return false
  c.queueChanges += 1
  for (const node of c.nodes.values()) {
    c.eagerChecks.add(node)
    const { deferred } = node
    node.deferred = null
    if (deferred === null) continue
    const present = new Set(deferred.present)
    if (deferred.isAfterLoss) supersedeUnstarted(c, node, now)
    settleAbsent(c, node, present, deferred.isAfterLoss, now)
  }
  return true
}

/** The store lost the placement of a later attempt: the earlier one is not started. */
function supersedeUnstarted(c: Cluster, node: Parameters<typeof placementsOn>[0], now: Instant): void {
  for (const placement of placementsOn(node)) if (placement.startedAt === null) supersede(c, placement, now)
}
