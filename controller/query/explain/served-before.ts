/**
 * Counts the entries of a node's queue that are served before a given one (semantics 5, "Return"), on demand.
 * Decides nothing.
 */
import type { Instant } from '../../../protocol/units.ts'
import type { ReturnOrderKey } from '../../policy/swap/resume.ts'
import { byReturnOrder } from '../../policy/swap/resume.ts'
import type { Cluster } from '../../state/cluster.ts'
import type { LiveEntry, LiveNode, LiveTask } from '../../state/facts.ts'
import { returnOrderKeyOf } from '../../policy/node-queue.ts'
import { placementsWaitingOn } from '../../engine/apply/vram/queued-placements.ts'

type WaitingState = Pick<Cluster, 'pendingCount' | 'policy' | 'queues'>

/** An entry with reserved VRAM keeps it: no entry is served before it. */
export function servedBeforeEntry(c: WaitingState, entry: LiveEntry, now: Instant): number {
  return entry.hasReserved ? 0 : servedBefore(c, entry.node, entry, now)
}

/** For a pending task without reserved VRAM: its actual or potential position in the node's queue. */
export function servedBeforeTask(c: WaitingState, task: LiveTask, node: LiveNode, now: Instant): number {
  return servedBefore(c, node, returnOrderKeyOf(task), now)
}

function servedBefore(c: WaitingState, node: LiveNode, turn: ReturnOrderKey, now: Instant): number {
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
