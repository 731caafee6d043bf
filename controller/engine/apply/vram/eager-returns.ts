/**
 * Eager returns (semantics 5): a task that has been swapped out for `eager_swap_in_seconds` returns to free
 * VRAM that no task waits for, although it does not want the GPU. Its idle clock continues, so it may be
 * swapped out again at once.
 */
import type { Instant, Mib } from '../../../../protocol/units.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { noteEagerReturn } from '../decision-log.ts'
import type { LiveGpu, LiveNode, LivePlacement, LiveTask } from '../../../state/facts.ts'
import { setResidency } from '../lifecycle/transitions.ts'
import { addressOf } from './enact-entry.ts'
import { placementsOn } from '../../../state/placements-on.ts'
import { pauseOf } from '../../../state/placement-pause.ts'
import { firstWaitingOn } from './queued-placements.ts'

/**
 * VRAM that stays free on a GPU after an eager return: this amount, or a tenth of the GPU if that is more.
 */
const LEAST_LEFT_MIB: Mib = 1024

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
  if (eagerSwapInMs === null || !isOpen(node) || pauseOf(c) !== null) return
  let next = Infinity
  for (const placement of absentOn(node)) {
    if (!hasRoom(placement)) continue
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

/** The node is up, and neither an operator nor the controller has closed it. */
function isOpen({ status, isCordoned, autoCordon, drain }: LiveNode): boolean {
  return status === 'up' && !isCordoned && autoCordon === null && drain === null
}

/**
 * Swapped-out tasks whose return nothing requests, in the order in which they return.
 * 1. Swapped out longest.
 * 2. Submission number.
 */
function absentOn(node: LiveNode): readonly LivePlacement[] {
  const absent: LivePlacement[] = []
  for (const placement of placementsOn(node)) {
    const { residency, entry, isSwappedOutByOperator, stopping, isOver, isInDoubt, task } = placement
    if (residency !== 'swapped_out' || entry !== null || isSwappedOutByOperator || isOver || isInDoubt)
      continue
    if (stopping === null && task.state === 'running') absent.push(placement)
  }
  return absent.sort(
    (a, b) => (a.swappedOutSince ?? 0) - (b.swappedOutSince ?? 0) || a.submissionNumber - b.submissionNumber,
  )
}

/**
 * Returns true if no entry waits on its GPUs, no task returns there, and enough stays free or the GPUs are
 * otherwise unused.
 */
function hasRoom(placement: LivePlacement): boolean {
  const { gpus, node, demandMib } = placement
  if (node.queue.some((entry) => entry.gpus.some((gpu) => gpus.includes(gpu)))) return false
  const isMoving = (gpu: LiveGpu) => gpu.placements.some(({ residency }) => residency === 'swapping_in')
  if (gpus.some((gpu) => gpu.freeMib < demandMib || isMoving(gpu))) return false
  return gpus.every((gpu) => gpu.freeMib - demandMib >= leastLeftMib(gpu)) || gpus.every(isDeserted)
}

function leastLeftMib({ physicalMib }: LiveGpu): Mib {
  return Math.max(LEAST_LEFT_MIB, Math.floor(physicalMib / 10))
}

/** Nothing is resident there or moving. */
function isDeserted({ placements, quarantinedCount }: LiveGpu): boolean {
  return quarantinedCount === 0 && placements.every(({ residency }) => residency === 'swapped_out')
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
  const { task, node, demandMib, generation } = placement
  placement.isEager = true
  c.eventLog.taskEvent(now, 'swap_in_decided', task, node.id, { waited_ms: 0, mib: demandMib, eager: true })
  noteEagerReturn(c, placement, now)
  c.eventLog.transaction.effects.push({
    kind: 'swap_in',
    ...addressOf(placement),
    generation,
    forceActive: false,
  })
  setResidency(c, placement, 'swapping_in', 'eager', now)
}
