/**
 * Eager returns (semantics 5): a task that has been swapped out for `eager_swap_in_seconds` returns to free
 * VRAM that no task waits for, although it does not want the GPU. Its idle clock continues, so it may be
 * swapped out again at once.
 */
import { movableMib } from '../../../model/placement.ts'
import type { Instant } from '../../../../protocol/units.ts'
import { absentAmong, hasRoomToReturn, mayReturnOn } from '../../../policy/eager-return.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { noteEagerReturn } from '../decision-log.ts'
import type { LiveNode, LivePlacement, LiveTask } from '../../../state/facts.ts'
import { setResidency } from '../lifecycle/transitions.ts'
import { addressOf } from './enact-entry.ts'
import { placementsOn } from '../../../state/placements-on.ts'
import { pauseOf } from '../../../state/placement-pause.ts'
import { firstWaitingOn } from './queued-placements.ts'

/** Checks every changed node: returns tasks, or plans the next check. */
export function returnEagerly(c: Cluster, now: Instant): void {
  if (c.eagerChecks.isEmpty) return
  for (const node of c.eagerChecks.take()) checkNode(c, node, now)
}

/** Requests a check: a task there may have been swapped out long enough. */
export function requestEagerCheck(c: Cluster, node: LiveNode): void {
  node.cancelEager = null
  c.eagerChecks.add(node)
}

function checkNode(c: Cluster, node: LiveNode, now: Instant): void {
  node.cancelEager?.()
  node.cancelEager = null
  const { eagerSwapInMs } = c.policy
  if (eagerSwapInMs === null || !mayReturnOn(node) || pauseOf(c) !== null) return
  let next = Infinity
  for (const placement of absentAmong(placementsOn(node))) {
    if (!hasRoomToReturn(placement)) continue
    const waiting = waitingFor(c, placement)
    if (waiting !== null) {
      c.eagerChecks.keepFor(waiting, node)
      continue
    }
    const at = Math.max((placement.swappedOutSince ?? now) + eagerSwapInMs, placement.backOffUntil)
    if (at > now) next = Math.min(next, at)
    else bringBack(c, placement, now)
  }
  if (next < Infinity) node.cancelEager = c.wake(next, () => requestEagerCheck(c, node))
}

/** Returns the first pending task that lacks nothing but VRAM on one of the GPUs; null if none does. */
function waitingFor(c: Cluster, { node, gpus }: LivePlacement): LiveTask | null {
  if (c.pendingCount === 0) return null
  for (const queue of c.queues) {
    const queued = firstWaitingOn(queue, node, gpus, c.policy.maxTasksPerGpu)
    if (queued !== null) return queued.task as LiveTask
  }
  return null
}

function bringBack(c: Cluster, placement: LivePlacement, now: Instant): void {
  const { task, node, generation } = placement
  placement.isEager = true
  const data = { waited_ms: 0, mib: movableMib(placement), eager: true }
  c.eventLog.taskEvent(now, 'swap_in_decided', task, node.id, data)
  noteEagerReturn(c, placement, now)
  c.eventLog.transaction.effects.push({
    kind: 'swap_in',
    ...addressOf(placement),
    generation,
    forceActive: false,
  })
  setResidency(c, placement, 'swapping_in', 'eager', now)
}
