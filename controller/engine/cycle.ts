/**
 * Every decision starts here. One cycle: owners and nodes' queues first, then the pending queue (semantics 4), until nothing changes.
 * Where a task goes is decided in `scheduler/schedule.ts`, who leaves or returns in `swap/swap.ts`.
 */
import type { Instant } from '../../protocol/units.ts'
import type { Node } from '../domain/node.ts'
import { nextPlacement } from '../scheduler/schedule.ts'
import { nextLiftAt, queueClass } from '../scheduler/queue.ts'
import type { Cluster } from './cluster.ts'
import type { Considered } from './explain/decision-log.ts'
import { consideredFor } from './explain/decision-log.ts'
import type { LiveGpu, LiveTask } from './live.ts'
import { updateEntryHolds, updatePoolHolds } from './pool/holds.ts'
import { askForPlacement } from './node/entries.ts'
import { pauseOf } from './node/placement-pause.ts'
import { claim, serveNode, settleOldGrowths } from './node/node-queue.ts'
import { assign } from './transitions.ts'

/** Two passes are the rule; more means that placements and nodes' queues keep changing each other. */
const MAX_PASSES = 1000

/** Decides everything that can be decided now; answers when time alone may change something next (null: never). */
export function runCycle(c: Cluster, now: Instant): Instant | null {
  c.ripening.ripen(c, now)
  if (isSettled(c, now)) return earliest(null, c.holdsLook.nextAt, c.isAnybodyWaiting() ? c.ripening.nextAt() : null)
  c.waiting.settleFeasibility(c.queues, now)
  const liftAt = liftAged(c, now)
  startAnew(c)
  const mayPlace = pauseOf(c) === null
  let holdAt: Instant | null = null
  for (let pass = 0; ; pass++) {
    if (pass === MAX_PASSES) throw new Error(`broken invariant: a cycle at ${now} does not settle`)
    for (const node of c.takeTouchedNodes()) {
      settleOldGrowths(c, node, now)
      serveNode(c, node, now)
      updateEntryHolds(c, node, now)
    }
    c.refreshPools()
    for (let isPlacing = mayPlace; isPlacing;) {
      holdAt = updatePoolHolds(c, now)
      c.refreshPools()
      isPlacing = placePending(c, now)
    }
    if (!c.hasTouchedNodes()) break
  }
  c.settle()
  return earliest(liftAt, holdAt, c.isAnybodyWaiting() ? c.ripening.nextAt() : null)
}

/** Nothing has happened and no waiting time is over since the last cycle, which tried everything: this one would decide nothing. */
export function isSettled(c: Cluster, now: Instant): boolean {
  if (c.hasWork() || (c.policy.queueAgingMs !== null && c.pendingCount > 0)) return false
  if (c.holdsLook.nextAt !== null && now >= c.holdsLook.nextAt) return false
  for (const queue of c.queues) if (queue.hasAside) return false
  return c.avoiders.size === 0
}

/** What was tried in vain in the last cycle may be tried again. */
function startAnew(c: Cluster): void {
  for (const queue of c.queues) queue.clearAside()
  if (c.avoiders.size === 0) return
  for (const task of c.avoiders) task.avoidedNow = null
  c.avoiders.clear()
}

function avoid(c: Cluster, task: LiveTask, node: Node): void {
  task.avoidedNow = new Set([...(task.avoidedNow ?? []), node])
  c.avoiders.add(task)
}

/** Places pending tasks one by one until nothing more fits; says whether any was placed or owns its bytes now. */
function placePending(c: Cluster, now: Instant): boolean {
  if (c.pendingCount === 0) return false
  let isPlacing = false
  for (let plan = nextPlacement(c); plan !== null; plan = nextPlacement(c)) {
    const task = plan.task as LiveTask
    const gpus = plan.gpus as readonly LiveGpu[]
    const considered = consideredFor(c, plan)
    if (plan.when === 'now') assign(c, task, gpus, 'now', now, considered)
    else if (!claimAfterSwap(c, task, gpus, considered, now)) avoid(c, task, plan.node)
    isPlacing = isPlacing || task.queue === null
    c.refreshPools()
  }
  return isPlacing
}

/** The task fits once victims have left: it owns its bytes from now on, or the figures were too hopeful and it waits on. */
function claimAfterSwap(c: Cluster, task: LiveTask, gpus: readonly LiveGpu[], considered: Considered | null, now: Instant): boolean {
  const isThere = task.claim !== null && task.claim.gpus.length === gpus.length && task.claim.gpus.every((gpu) => gpus.includes(gpu))
  return claim(c, isThere && task.claim !== null ? task.claim : askForPlacement(c, task, gpus, task.spec.vramMib), considered, now)
}

/** `queue_aging_seconds`: lifts those whose time has come; answers the next instant. */
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
