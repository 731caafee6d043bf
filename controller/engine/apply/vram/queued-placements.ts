/**
 * Pending tasks in a node's queue (semantics 5, "Return"): for each pool and shape, the first task in queue
 * order that the node can take participates, a P0 task if there is one. It is served before the entries that
 * come after it; its GPUs are chosen as for any pending task.
 */
import type { Instant } from '../../../../protocol/units.ts'
import type { PendingTurn } from '../../../policy/node-queue.ts'
import {
  canTake,
  comesBefore,
  firstTakenBy,
  firstTurn,
  firstWaitingFor,
  onePerShape,
} from '../../../policy/node-queue.ts'
import { isPlaceable } from '../../../policy/placement/feasible.ts'
import type { Queued } from '../../../policy/placement/queue.ts'
import { placeFor, poolHeads } from '../../../policy/placement/schedule.ts'
import type { SwapGpu } from '../../../policy/swap/eligible.ts'
import { coversPlacement } from '../../../policy/swap/swap.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { LiveEntry, LiveGpu, LiveNode, LiveTask } from '../../../state/facts.ts'
import type { PendingQueue } from '../../../state/index/pending-queue.ts'
import { pauseOf } from '../../../state/placement-pause.ts'
import type { Placed } from './enact-entry.ts'
import { placeByPlan } from './placing.ts'
import { updateEntryReservations, updatePoolReservations } from './reservations.ts'

export type QueuedPlacement = PendingTurn<PendingQueue>

/**
 * Places pending tasks that come before the entry and that its node can take, up to the first one for which
 * victims leave: what they free is for the entries checked before, too. Returns true if any was placed or
 * owns its bytes now.
 */
export function placeAhead(c: Cluster, entry: LiveEntry, now: Instant): boolean {
  // While placements are paused no head may reserve GPUs: it would become a collector and be placed.
  if (c.pendingCount === 0 || pauseOf(c) !== null) return false
  // Reservations must be current: the decision before this one may have brought other GPUs closer to a head,
  // or served an entry that reserved its GPUs.
  updateEntryReservations(c, entry.node, now)
  c.refreshPools()
  updatePoolReservations(c, now)
  let isChanged = false
  for (let ahead = firstAhead(c, entry, now); ahead !== null; ahead = firstAhead(c, entry, now)) {
    const placed = placeQueued(c, ahead, now)
    if (placed === 'freed') return true
    isChanged ||= placed === 'placed'
  }
  return isChanged
}

export function placeQueued(c: Cluster, { queued, queue }: QueuedPlacement, now: Instant): Placed {
  c.refreshPools()
  const plan = placeFor(queued, queue, c.policy)
  if (plan !== null) return placeByPlan(c, plan, now)
  queue.setAside(queued.task as LiveTask)
  return 'not'
}

/** Returns true if some node of its pool can take the task now. */
export function fitsSomewhere(c: Cluster, { queued, queue }: QueuedPlacement, now: Instant): boolean {
  c.refreshPools()
  const plan = placeFor(queued, queue, c.policy)
  return (
    plan !== null &&
    (plan.when === 'now' || coversPlacement(plan.task, plan.node, plan.gpus as readonly SwapGpu[], now))
  )
}

/** The first pending P0 task that the node can take. */
export function firstP0On(c: Cluster, node: LiveNode, now: Instant): QueuedPlacement | null {
  return firstTurn(placementsFor(c, node, now, ({ shape }) => shape.isP0))
}

/** The first pending task in queue order that comes before the entry and that its node can take. */
function firstAhead(c: Cluster, entry: LiveEntry, now: Instant): QueuedPlacement | null {
  return firstTurn(
    placementsFor(c, entry.node, now).filter(({ queued }) =>
      comesBefore(queued.task as LiveTask, entry, c.policy, now),
    ),
  )
}

/**
 * Pending tasks that wait for VRAM of the node, and so belong to its queue: one per shape, whether or not the
 * node can take it now.
 */
export function placementsWaitingOn(
  c: Pick<Cluster, 'pendingCount' | 'policy' | 'queues'>,
  node: LiveNode,
): readonly QueuedPlacement[] {
  if (c.pendingCount === 0 || !isPlaceable(node)) return []
  const found: QueuedPlacement[] = []
  const heads = c.policy.strategy === 'fifo' ? poolHeads(c.queues) : null
  for (const queue of c.queues) {
    const queued = firstWaitingOn(queue, node, node.gpus, c.policy.maxTasksPerGpu)
    if (queued !== null && (heads === null || heads.get(queue.pool)?.head.task === queued.task))
      found.push({ queued, queue })
  }
  return onePerShape(found)
}

/** As `firstWaitingFor`; null also if the queue does not concern the node now. */
export function firstWaitingOn(
  queue: PendingQueue,
  node: LiveNode,
  gpus: readonly LiveGpu[],
  maxTasksPerGpu: number,
): Queued | null {
  return concerns(queue, node) ? firstWaitingFor(queue, node, gpus, maxTasksPerGpu) : null
}

function concerns({ size, isLimited, pool }: PendingQueue, node: LiveNode): boolean {
  return size > 0 && !isLimited && pool.nodes.has(node)
}

/** Returns the tasks that participate in the node's queue now. */
function placementsFor(
  c: Cluster,
  node: LiveNode,
  now: Instant,
  isWanted: Wanted = ALL,
): readonly QueuedPlacement[] {
  if (c.pendingCount === 0 || !isPlaceable(node) || pauseOf(c) !== null) return []
  return onePerShape(
    c.policy.strategy === 'fifo' ? headsOn(c, node, now, isWanted) : firstsOn(c, node, now, isWanted),
  )
}

type Wanted = (queue: PendingQueue) => boolean
const ALL: Wanted = () => true

function firstsOn(c: Cluster, node: LiveNode, now: Instant, isWanted: Wanted): readonly QueuedPlacement[] {
  const found: QueuedPlacement[] = []
  for (const queue of c.queues) {
    const queued = isWanted(queue) && concerns(queue, node) ? firstTakenBy(node, queue, c.policy, now) : null
    if (queued !== null) found.push({ queued, queue })
  }
  return found
}

/** With `fifo` no task overtakes the head of a pool. */
function headsOn(c: Cluster, node: LiveNode, now: Instant, isWanted: Wanted): readonly QueuedPlacement[] {
  const found: QueuedPlacement[] = []
  for (const { head, queue } of poolHeads(c.queues).values()) {
    const isAsked = isWanted(queue) && queue.pool.nodes.has(node) && !queue.isSetAside(head.task as LiveTask)
    if (isAsked && canTake(node, head, queue.shape, c.policy, now)) found.push({ queued: head, queue })
  }
  return found
}
