/** Obstacles of an entry of a node's queue other than VRAM. */
import type { Instant } from '../../../../protocol/units.ts'
import { hasHostRoomToGrow, isPlaceable } from '../../../policy/placement/feasible.ts'
import { lacksOnlyVram } from '../../../policy/placement/schedule.ts'
import { shapeOf } from '../../../policy/placement/shape.ts'
import { shortMib } from '../../../policy/swap/bytes.ts'
import { arrivingMib, couldLeaveMib } from '../../../policy/swap/eligible.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { LiveEntry } from '../../../state/facts.ts'

/**
 * Returns false if the node was closed, became silent or changed groups: a task that has not started there
 * goes elsewhere.
 */
export function isNodeStillUsable(c: Cluster, { node, task }: LiveEntry): boolean {
  return (
    isPlaceable(node) &&
    node.attemptCount <= node.maxAttempts &&
    c.poolFor(shapeOf(task.spec).poolKey).nodes.has(node)
  )
}

/** Above C all swappable tasks of a GPU must fit in host memory at once, also when a growth exceeds C. */
export function hasHostMemory({ gpus, needMib, task }: LiveEntry): boolean {
  return hasHostRoomToGrow(gpus, needMib, task.placement?.noswap === 1)
}

/** After a failed swap-in the next attempt is delayed. */
export function isBackingOff(entry: LiveEntry, now: Instant): boolean {
  return entry.kind === 'swap_in' && (entry.task.placement?.backOffUntil ?? 0) > now
}

/** An entry blocked by anything other than VRAM cannot become the collector. */
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
 * Returns true if P0 tasks that it may not swap out block the entry for as long as they stay: it then reserves
 * no GPU (semantics 5, second exception). A task that is about to be resident can leave later.
 */
export function isBehindP0Only(entry: LiveEntry): boolean {
  const { gpus, task } = entry
  return gpus.some((gpu) => shortMib(gpu, entry) > couldLeaveMib(gpu, task) + arrivingMib(gpu, task))
}
