/**
 * How many entries of a node's queue are served before one of them (semantics 5, "Return"). On demand only;
 * decides nothing.
 */
import type { Instant } from '../../../protocol/units.ts'
import type { ReturnOrderKey } from '../../swap/resume.ts'
import { byReturnOrder } from '../../swap/resume.ts'
import type { Cluster } from '../cluster.ts'
import type { LiveEntry, LiveNode, LiveTask } from '../live.ts'
import { placementsWaitingOn, returnOrderKeyOf } from '../node/queued-placements.ts'

/** An entry that owns its bytes keeps them: none is served before it. */
export function servedBeforeEntry(c: Cluster, entry: LiveEntry, now: Instant): number {
  return entry.hasReserved ? 0 : servedBefore(c, entry.node, entry, now)
}

/** Of a pending task that owns no bytes, where it stands in the node's queue, or would. */
export function servedBeforeTask(c: Cluster, task: LiveTask, node: LiveNode, now: Instant): number {
  return servedBefore(c, node, returnOrderKeyOf(task), now)
}

function servedBefore(c: Cluster, node: LiveNode, turn: ReturnOrderKey, now: Instant): number {
  const counted = new Set([turn.task])
  let before = 0
  const count = (other: ReturnOrderKey, owns: boolean) => {
    if (counted.has(other.task)) return
    counted.add(other.task)
    if (owns || byReturnOrder(other, turn, c.policy, now) < 0) before += 1
  }
  for (const entry of node.queue) count(entry, entry.hasReserved)
  for (const { queued } of placementsWaitingOn(c, node))
    count(returnOrderKeyOf(queued.task as LiveTask), false)
  return before
}
