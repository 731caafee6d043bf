/** Serves the entries of a node's queue that wait for VRAM. */
import type { Instant } from '../../../../protocol/units.ts'
import { decideOldGrowth } from '../../../policy/growth.ts'
import { obstacleTo } from '../../../policy/node-queue.ts'
import { shapeOf } from '../../../policy/placement/shape.ts'
import { inReturnOrder } from '../../../policy/swap/resume.ts'
import { decideEntry } from '../../../policy/swap/swap.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { noteGrowthRefused, noteLoneSwapOut } from '../decision-log.ts'
import { appointCollector, preemptCollectorForPending, preemptCollector } from './collector.ts'
import { addressOf, enactReady, enactSwapOut, cancelReservation, orderSwapOut } from './enact-entry.ts'
import { dropEntry, reserveVram } from '../lifecycle/entries.ts'
import type { LiveEntry, LiveGpu, LiveNode, LivePlacement, FailedAttemptKey } from '../../../state/facts.ts'
import { placeAhead } from './queued-placements.ts'

/**
 * Serves entries with reserved VRAM first, then the others in return order, until nothing changes; then
 * appoints a collector if the node has none. Pending tasks take their turns in between
 * (`queued-placements.ts`).
 */
export function serveNode(c: Cluster, node: LiveNode, now: Instant): void {
  preemptCollectorForPending(c, node, now)
  const rounds = 2 * node.queue.length + 2
  for (let round = 0; round < rounds && node.queue.length > 0; round++) {
    const inOrder = inReturnOrder(node.queue, c.policy, now)
    let isChanged = false
    for (const entry of inOrder)
      if (entry.hasReserved && isQueued(entry)) isChanged = serve(c, entry, now) !== 'unchanged' || isChanged
    for (const entry of inOrder) {
      if (entry.hasReserved || !isQueued(entry)) continue
      const served = serve(c, entry, now)
      isChanged ||= served !== 'unchanged'
      // The entry may leave a part of what was freed for it to entries checked before: begin again.
      if (served === 'freed') break
    }
    if (!isChanged && !appointCollector(c, node, now)) break
  }
  planNextVisit(c, node, now)
}

/**
 * `freed`: VRAM was freed for the entry, by victims or by a released reservation, maybe more than it needs.
 */
type Served = 'unchanged' | 'changed' | 'freed'

function serve(c: Cluster, entry: LiveEntry, now: Instant): Served {
  // A placement without reserved VRAM takes its turn as a pending task; here it only waits to become the
  // collector.
  if (entry.kind === 'placement' && !entry.hasReserved) return 'unchanged'
  const isInPool = entry.kind !== 'placement' || isInPoolOf(c, entry)
  if (obstacleTo(entry, isInPool, now) !== null) return release(c, entry, now)
  if (isUnchangedSinceFailure(entry)) return 'unchanged'
  const decision = decideEntry(entry, entry.gpus, now, entry.isCollector)
  const isCovered = decision.kind !== 'not_covered' && decision.kind !== 'impossible'
  if (isCovered && !entry.hasReserved && placeAhead(c, entry, now)) return 'freed'
  // Not before: a task that was placed ahead on other GPUs leaves everything here as it was.
  entry.failedAttempt =
    decision.kind === 'ready' || decision.kind === 'swap_out' ? null : failedAttemptKeyOf(entry)
  switch (decision.kind) {
    case 'ready':
      return changedIf(enactReady(c, entry, now))
    case 'wait':
      return changedIf(reserveVram(c, entry))
    case 'swap_out':
      reserveVram(c, entry)
      enactSwapOut(c, entry, decision, null, now)
      return 'freed'
    case 'not_covered':
      if (!preemptCollector(c, entry, now)) return release(c, entry, now)
      // At once: in the next round another entry could reserve the VRAM first.
      serve(c, entry, now)
      return 'freed'
    case 'impossible':
      return release(c, entry, now)
  }
}

function release(c: Cluster, entry: LiveEntry, now: Instant): Served {
  return changedIf(entry.hasReserved && cancelReservation(c, entry, now))
}

function changedIf(isChanged: boolean): Served {
  return isChanged ? 'changed' : 'unchanged'
}

function isInPoolOf(c: Cluster, { node, task }: LiveEntry): boolean {
  return c.poolFor(shapeOf(task.spec).poolKey).nodes.has(node)
}

/** Returns true if nothing the last failed attempt depended on has changed. */
function isUnchangedSinceFailure({ gpus, node, task, failedAttempt }: LiveEntry): boolean {
  if (failedAttempt === null || failedAttempt.hostUsedMib !== node.hostUsedMib) return false
  return (
    failedAttempt.ledgerVersion === ledgerVersionOf(gpus) &&
    failedAttempt.collector === node.collector &&
    failedAttempt.spec === task.spec
  )
}

function failedAttemptKeyOf({ gpus, node, task }: LiveEntry): FailedAttemptKey {
  return {
    ledgerVersion: ledgerVersionOf(gpus),
    hostUsedMib: node.hostUsedMib,
    collector: node.collector,
    spec: task.spec,
  }
}

function ledgerVersionOf(gpus: readonly LiveGpu[]): number {
  let changes = 0
  for (const gpu of gpus) changes += gpu.ledgerVersion
  return changes
}

/** Settles growths that have waited `reservation_after_seconds`. */
export function settleOldGrowths(c: Cluster, node: LiveNode, now: Instant): void {
  let old: LiveEntry[] | null = null
  for (const entry of node.queue) {
    if (entry.kind === 'growth' && now - entry.askedAt >= c.policy.reservationAfterMs)
      (old ??= []).push(entry)
  }
  if (old === null) return
  for (const entry of old) {
    const placement = entry.task.placement
    if (placement === null) continue
    const decision = decideOldGrowth(entry, placement, now)
    if (decision.kind === 'refuse') refuseGrowth(c, entry, placement, decision.reason, now)
    else if (decision.kind === 'return_grown') {
      orderSwapOut(c, placement, null, now)
      noteLoneSwapOut(c, placement, 'return_grown', now)
    }
  }
}

function refuseGrowth(
  c: Cluster,
  entry: LiveEntry,
  placement: LivePlacement,
  reason: string,
  now: Instant,
): void {
  placement.heldGrowth = null
  dropEntry(c, entry)
  c.eventLog.taskEvent(now, 'growth_refused', placement.task, placement.node.id, {
    attempt: placement.attempt,
    reason,
  })
  noteGrowthRefused(c, entry, reason, now)
  c.eventLog.transaction.effects.push({
    kind: 'refuse_growth',
    ...addressOf(placement),
    mib: placement.demandMib,
    reason,
  })
}

/**
 * Plans the next instant at which time alone changes the queue: a rank rises, a growth is settled, an entry
 * begins to reserve its GPUs, or a back-off ends.
 */
function planNextVisit(c: Cluster, node: LiveNode, now: Instant): void {
  let next = Infinity
  for (const entry of node.queue) {
    const backOffUntil = entry.kind === 'placement' ? 0 : (entry.task.placement?.backOffUntil ?? 0)
    next = sooner(next, entry.askedAt + c.policy.swapInAgingMs, now)
    next = sooner(next, entry.askedAt + c.policy.reservationAfterMs, now)
    next = sooner(next, backOffUntil, now)
  }
  const wakeAt = next === Infinity ? null : next
  if (wakeAt === node.wakeAt) return
  node.cancelWake?.()
  node.wakeAt = wakeAt
  node.cancelWake = wakeAt === null ? null : c.wake(wakeAt, () => revisitQueue(c, node))
}

/** Runs when the timer of `planNextVisit` is due. */
export function revisitQueue(c: Cluster, node: LiveNode): void {
  node.wakeAt = null
  node.cancelWake = null
  c.touchNode(node)
}

function sooner(next: Instant, at: Instant, now: Instant): Instant {
  return at > now && at < next ? at : next
}

function isQueued(entry: LiveEntry): boolean {
  return entry.node.queue.includes(entry)
}
