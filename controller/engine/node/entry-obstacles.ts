/** What other than bytes stands in the way of an entry of a node's queue. */
import type { Instant } from '../../../protocol/units.ts'
import { hasHostRoomToGrow, isPlaceable } from '../../scheduler/feasible.ts'
import { lacksOnlyVram } from '../../scheduler/schedule.ts'
import { shapeOf } from '../../scheduler/shape.ts'
import { shortMib } from '../../swap/bytes.ts'
import { couldLeaveMib } from '../../swap/eligible.ts'
import type { Cluster } from '../cluster.ts'
import type { LiveEntry } from '../live.ts'

/** The node was closed, fell silent or changed groups: a task that has not started there goes elsewhere. */
export function isNodeStillUsable(c: Cluster, { node, task }: LiveEntry): boolean {
  return (
    isPlaceable(node) &&
    node.attemptCount <= node.maxAttempts &&
    c.poolFor(shapeOf(task.spec).poolKey).nodes.has(node)
  )
}

/**
 * Above C all swappable tasks of a GPU must find room in the host's memory at once, also when it is a growth
 * that takes them there.
 */
export function hasHostMemory({ gpus, needMib, task }: LiveEntry): boolean {
  return hasHostRoomToGrow(gpus, needMib, task.placement?.noswap === 1)
}

/** After a failed swap-in it is not tried again at once. */
export function isBackingOff(entry: LiveEntry, now: Instant): boolean {
  return entry.kind === 'swap_in' && (entry.task.placement?.backOffUntil ?? 0) > now
}

/** An entry that anything but VRAM stands in the way of would let go again at once, and does not collect. */
export function isBlockedByVramOnly(c: Cluster, entry: LiveEntry, now: Instant): boolean {
  switch (entry.kind) {
    case 'placement':
      return lacksOnlyVram(entry.task, entry.gpus, c.policy.maxTasksPerGpu)
    case 'growth':
      return hasHostMemory(entry)
    case 'swap_in':
      return !isBackingOff(entry, now)
  }
}

/**
 * Only P0 holders that it may not swap stand in its way: such an entry holds no GPU back (semantics 5, second
 * exception).
 */
export function isBehindP0Only(entry: LiveEntry): boolean {
  for (const gpu of entry.gpus) if (shortMib(gpu, entry) > couldLeaveMib(gpu, entry.task)) return true
  return false
}
