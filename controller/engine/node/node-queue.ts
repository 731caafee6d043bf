/** A node's queue of those that wait for bytes: in which order they are served. */
import type { Instant } from '../../../protocol/units.ts'
import { couldEverBeResident, inReturnOrder } from '../../swap/resume.ts'
import { decideEntry } from '../../swap/swap.ts'
import type { Cluster } from '../cluster.ts'
import { noteGrowthRefused, noteLoneSwapOut } from '../explain/decision-log.ts'
import { appointCollector, makeRoomForPending, makeRoomOfCollector } from './collector.ts'
import { addressOf, enactReady, enactSwapOut, loseHold, orderSwapOut } from './enact-entry.ts'
import { dropEntry, own } from './entries.ts'
import { isBackingOff, isPromisedHostMemory, isStillAChoice } from './entry-obstacles.ts'
import type { LiveEntry, LiveGpu, LiveNode, LivePlacement, VainLook } from '../live.ts'
import { placeAhead } from './queued-placements.ts'

/**
 * Owners first, then the others in return order, until nothing changes; then a collector if the node has
 * none. Pending tasks take their turns among them (`queued-placements.ts`).
 */
export function serveNode(c: Cluster, node: LiveNode, now: Instant): void {
  makeRoomForPending(c, node, now)
  const rounds = 2 * node.queue.length + 2
  for (let round = 0; round < rounds && node.queue.length > 0; round++) {
    const inOrder = inReturnOrder(node.queue, c.policy, now)
    let isChanged = false
    for (const entry of inOrder)
      if (entry.owns && isQueued(entry)) isChanged = serve(c, entry, now) || isChanged
    for (const entry of inOrder) {
      if (entry.owns || !isQueued(entry)) continue
      const { collector } = node
      isChanged = serve(c, entry, now) || isChanged
      // The collector has let go for it: what is left over is for whoever comes first, and that may be
      // somebody who was asked already.
      if (collector !== null && node.collector === null) break
    }
    if (!isChanged && !appointCollector(c, node, now)) break
  }
  planNextLook(c, node, now)
}

function serve(c: Cluster, entry: LiveEntry, now: Instant): boolean {
  // A placement that owns nothing takes its turn as a pending task; here it only waits to become the
  // collector.
  if (entry.kind === 'placement' && !entry.owns) return false
  if (isBackingOff(entry, now)) return entry.owns ? loseHold(c, entry, now) : false
  if (entry.kind === 'placement' && !isStillAChoice(c, entry)) return loseHold(c, entry, now)
  if (entry.kind === 'growth' && !isPromisedHostMemory(entry))
    return entry.owns ? loseHold(c, entry, now) : false
  if (isAsInVain(entry)) return false
  const decision = decideEntry(entry, entry.gpus, now, entry.isCollector)
  entry.vainLook = decision.kind === 'ready' || decision.kind === 'swap_out' ? null : lookOf(entry)
  const isCovered = decision.kind !== 'not_covered' && decision.kind !== 'impossible'
  if (isCovered && !entry.owns && placeAhead(c, entry, now)) {
    if (isQueued(entry)) serve(c, entry, now)
    return true
  }
  switch (decision.kind) {
    case 'ready':
      return enactReady(c, entry, now)
    case 'wait':
      return own(c, entry)
    case 'swap_out':
      own(c, entry)
      enactSwapOut(c, entry, decision, null, now)
      return true
    case 'not_covered':
      if (!makeRoomOfCollector(c, entry, now)) return entry.owns ? loseHold(c, entry, now) : false
      // At once: by the next round somebody who comes after it would own the bytes.
      serve(c, entry, now)
      return true
    case 'impossible':
      return entry.owns ? loseHold(c, entry, now) : false
  }
}

/**
 * Its GPUs' books, the node's host memory and its collector are as when nothing came of it: nothing comes of
 * it now.
 */
function isAsInVain({ gpus, node, task, vainLook }: LiveEntry): boolean {
  if (vainLook === null || vainLook.hostUsedMib !== node.hostUsedMib) return false
  return (
    vainLook.bookChanges === bookChangesOf(gpus) &&
    vainLook.collector === node.collector &&
    vainLook.spec === task.spec
  )
}

function lookOf({ gpus, node, task }: LiveEntry): VainLook {
  return {
    bookChanges: bookChangesOf(gpus),
    hostUsedMib: node.hostUsedMib,
    collector: node.collector,
    spec: task.spec,
  }
}

function bookChangesOf(gpus: readonly LiveGpu[]): number {
  let changes = 0
  for (const gpu of gpus) changes += gpu.bookChanges
  return changes
}

/**
 * A growth that has waited `reservation_after_seconds`: one that can never be, or of a noswap task, is
 * refused; a swappable task becomes a victim itself, and returns with the larger demand (semantics 1,
 * "growth").
 */
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
    if (placement.noswap === 1) refuseGrowth(c, entry, placement, 'WAITING_PHYSICAL_VRAM', now)
    else if (!couldEverBeResident(entry)) refuseGrowth(c, entry, placement, 'RESIDENCY_IMPOSSIBLE', now)
    else if (!isPromisedHostMemory(entry)) refuseGrowth(c, entry, placement, 'SWAP_SPACE_EXHAUSTED', now)
    else if (!entry.owns && mayLeaveToReturnGrown(placement, now)) {
      orderSwapOut(c, placement, null, now)
      noteLoneSwapOut(c, placement, 'return_grown', now)
    }
  }
}

function mayLeaveToReturnGrown(placement: LivePlacement, now: Instant): boolean {
  const { node, demandMib, gpus } = placement
  const isRoomInHost = node.hostUsedMib + demandMib * gpus.length <= node.hostSwapMib
  return placement.residency === 'resident' && now >= placement.backOffUntil && isRoomInHost
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
  c.recorder.taskEvent(now, 'growth_refused', placement.task, placement.node.id, {
    attempt: placement.attempt,
    reason,
  })
  noteGrowthRefused(c, entry, reason, now)
  c.recorder.turn.effects.push({
    kind: 'refuse_growth',
    ...addressOf(placement),
    mib: placement.demandMib,
    reason,
  })
}

/**
 * Time alone changes things here at few instants: a rank rises, a growth is settled, an entry begins to hold
 * its GPUs, a back-off ends.
 */
function planNextLook(c: Cluster, node: LiveNode, now: Instant): void {
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
  node.cancelWake = wakeAt === null ? null : c.wake(wakeAt, () => lookAgain(c, node))
}

/** The instant of `planNextLook` has come. */
export function lookAgain(c: Cluster, node: LiveNode): void {
  node.wakeAt = null
  c.touchNode(node)
}

function sooner(next: Instant, at: Instant, now: Instant): Instant {
  return at > now && at < next ? at : next
}

function isQueued(entry: LiveEntry): boolean {
  return entry.node.queue.includes(entry)
}
