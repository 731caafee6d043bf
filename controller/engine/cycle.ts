/**
 * Every decision starts here. One cycle serves the nodes' queues, entries with reserved VRAM first, then the
 * pending queue (semantics 4), until nothing changes. `scheduler/schedule.ts` decides where a task goes,
 * `swap/swap.ts` which tasks leave or return.
 */
import type { Instant } from '../../protocol/units.ts'
import { nextPlacement } from '../policy/placement/schedule.ts'
import { nextLiftAt, queueClass } from '../policy/placement/queue.ts'
import type { Cluster } from '../state/cluster.ts'
import { updateEntryReservations, updatePoolReservations } from './apply/vram/reservations.ts'
import { revisitCollectors } from './apply/vram/collector.ts'
import { pauseOf } from '../state/placement-pause.ts'
import { returnEagerly } from './apply/vram/eager-returns.ts'
import { serveNode, settleOldGrowths } from './apply/vram/node-queue.ts'
import { placeByPlan } from './apply/vram/placing.ts'
import type { Placed } from './apply/vram/enact-entry.ts'
import type { LiveEntry, LiveNode } from '../state/facts.ts'

/**
 * Two passes are usual. Reaching this limit means that placements and node queues keep changing each other.
 */
const MAX_PASSES = 1000

/**
 * Decides everything that can be decided now. Returns the next instant at which time alone may change
 * something (null: never).
 */
export function runCycle(c: Cluster, now: Instant): Instant | null {
  c.eligibilityTimers.runDue(c, now)
  if (isPlacingSettled(c, now)) {
    returnEagerly(c, now)
    return earliest(
      null,
      c.lastReservationPass.nextAt,
      c.hasWaitingTasks() ? c.eligibilityTimers.nextAt() : null,
    )
  }
  c.waiting.settleFeasibility(c.queues, now)
  const liftAt = liftAged(c, now)
  clearFailedPlacements(c)
  revisitCollectors(c)
  const mayPlace = pauseOf(c) === null
  let holdAt: Instant | null = null
  for (let pass = 0; ; pass++) {
    if (pass === MAX_PASSES) throw new Error(`broken invariant: a cycle at ${now} does not settle`)
    for (const node of c.takeTouchedNodes()) {
      settleOldGrowths(c, node, now)
      serveNode(c, node, now)
      updateEntryReservations(c, node, now)
    }
    c.refreshPools()
    for (let isPlacing = mayPlace; isPlacing;) {
      holdAt = updatePoolReservations(c, now)
      c.refreshPools()
      const placed = placePending(c, now)
      // Tasks may have failed because the reservation of a head that is placed now was still there.
      if (placed !== 'not') clearFailedPlacements(c)
      isPlacing = placed === 'placed'
    }
    if (!c.hasTouchedNodes()) break
  }
  returnEagerly(c, now)
  c.settle()
  return earliest(liftAt, holdAt, c.hasWaitingTasks() ? c.eligibilityTimers.nextAt() : null)
}

/**
 * Returns true if this cycle would decide nothing: nothing has happened and no wait has ended since the last
 * cycle.
 */
export function isSettled(c: Cluster, now: Instant): boolean {
  return c.eagerChecks.isEmpty && isPlacingSettled(c, now)
}

/** As above, without eager returns. */
function isPlacingSettled(c: Cluster, now: Instant): boolean {
  if (c.hasPlacingWork() || (c.policy.queueAgingMs !== null && c.pendingCount > 0)) return false
  if (c.lastReservationPass.nextAt !== null && now >= c.lastReservationPass.nextAt) return false
  for (const queue of c.queues) if (queue.hasAside) return false
  return c.avoiders.size === 0
}

/** Clears the failures of the last cycle, so that they are tried again. */
function clearFailedPlacements(c: Cluster): void {
  for (const queue of c.queues) queue.clearAside()
  if (c.avoiders.size === 0) return
  for (const task of c.avoiders) task.avoidedNow = null
  c.avoiders.clear()
}

/**
 * Places pending tasks one by one until nothing more fits. It stops after one that has freed VRAM on a node
 * where other entries wait: they may come before the next pending task, and are served first.
 */
function placePending(c: Cluster, now: Instant): Placed {
  if (c.pendingCount === 0) return 'not'
  let isPlacing = false
  for (let plan = nextPlacement(c); plan !== null; plan = nextPlacement(c)) {
    const placed = placeByPlan(c, plan, now)
    c.refreshPools()
    if (placed === 'freed' && (plan.node as LiveNode).queue.some(isWaiting)) return 'freed'
    isPlacing ||= placed !== 'not'
  }
  return isPlacing ? 'placed' : 'not'
}

function isWaiting({ kind, hasReserved }: LiveEntry): boolean {
  return kind !== 'placement' && !hasReserved
}

/**
 * `queue_aging_seconds`: lifts tasks that have waited long enough. Returns the next instant at which one will
 * be.
 */
function liftAged(c: Cluster, now: Instant): Instant | null {
  if (c.policy.queueAgingMs === null || c.pendingCount === 0) return null
  let next: Instant | null = null
  for (const queue of c.queues) {
    for (const task of [...queue.tasks()]) {
      if (queueClass(task, c.policy, now) !== task.queueClass) c.requeue(task, now)
      next = earliest(next, nextLiftAt(task, c.policy, now))
    }
  }
  return next
}

function earliest(...instants: readonly (Instant | null)[]): Instant | null {
  let first: Instant | null = null
  for (const at of instants) if (at !== null && (first === null || at < first)) first = at
  return first
}
