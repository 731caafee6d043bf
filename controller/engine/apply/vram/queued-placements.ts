/**
 * Pending tasks in a node's queue (semantics 5, "Return"): for each pool and shape, the first task in queue
 * order that the node can take participates, a P0 task if there is one. It is served before the entries that
 * come after it; its GPUs are chosen as for any pending task.
 */
import type { Instant, Mib } from '../../../../protocol/units.ts'
import type { Policy } from '../../../model/config.ts'
import {
  isClosedTo,
  isPlaceable,
  isRefusedBy,
  kthLargest,
  largestAfterSwapMib,
  largestButForVramMib,
  largestNowMib,
} from '../../../policy/placement/feasible.ts'
import type { Queued } from '../../../policy/placement/queue.ts'
import { byQueueOrder } from '../../../policy/placement/queue.ts'
import { gpusOnNode, placeFor, poolHeads } from '../../../policy/placement/schedule.ts'
import type { Shape } from '../../../policy/placement/shape.ts'
import type { ReturnOrderKey } from '../../../policy/swap/resume.ts'
import { byReturnOrder } from '../../../policy/swap/resume.ts'
import type { SwapGpu } from '../../../policy/swap/eligible.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { LiveEntry, LiveGpu, LiveNode, LiveTask } from '../../../state/facts.ts'
import type { PendingQueue } from '../../../state/index/pending-queue.ts'
import { updatePoolReservations } from './reservations.ts'
import { coversPlacement } from '../../../policy/swap/swap.ts'
import { pauseOf } from '../../../state/placement-pause.ts'
import { placeByPlan } from './placing.ts'

/** A pending task, and the queue that it waits in. */
export interface QueuedPlacement {
  readonly queued: Queued
  readonly queue: PendingQueue
}

/**
 * Maximum number of tasks of one shape tried on a node: its indexes may admit a task that its reservations or
 * victims do not.
 */
const MAX_TRIED = 16

/**
 * Places pending tasks that come before the entry and that its node can take. Returns true if any was placed
 * or owns its bytes now.
 */
export function placeAhead(c: Cluster, entry: LiveEntry, now: Instant): boolean {
  // While placements are paused no head may reserve GPUs: it would become a collector and be placed.
  if (c.pendingCount === 0 || pauseOf(c) !== null) return false
  // Reservations of heads must be current: the decision before this one may have brought other GPUs closer.
  c.refreshPools()
  updatePoolReservations(c, now)
  let isChanged = false
  for (let ahead = firstAhead(c, entry, now); ahead !== null; ahead = firstAhead(c, entry, now)) {
    isChanged = placeQueued(c, ahead, now) || isChanged
  }
  return isChanged
}

/** Returns true if the task is placed or has VRAM reserved now. */
export function placeQueued(c: Cluster, { queued, queue }: QueuedPlacement, now: Instant): boolean {
  c.refreshPools()
  const plan = placeFor(queued, queue, c.policy)
  if (plan !== null) return placeByPlan(c, plan, now)
  queue.setAside(queued.task as LiveTask)
  return false
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
  return firstOf(placementsFor(c, node, now, ({ shape }) => shape.isP0))
}

/** The first pending task in queue order that comes before the entry and that its node can take. */
function firstAhead(c: Cluster, entry: LiveEntry, now: Instant): QueuedPlacement | null {
  return firstOf(
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

/**
 * Returns the first pending task of the queue that lacks nothing but VRAM on the node, using at least one of
 * these GPUs; null if none exists.
 */
export function firstWaitingOn(
  queue: PendingQueue,
  node: LiveNode,
  gpus: readonly LiveGpu[],
  maxTasksPerGpu: number,
): Queued | null {
  const { shape } = queue
  if (queue.size === 0 || queue.isLimited || !queue.pool.nodes.has(node)) return null
  const but = (gpu: LiveGpu) => largestButForVramMib(gpu, shape.kind, maxTasksPerGpu)
  const mostMib = Math.min(kthLargest(node.gpus.map(but), shape.gpuCount), kthLargest(gpus.map(but), 1))
  for (let next = queue.headWithin(mostMib); next !== null; next = queue.nextWithin(next, mostMib)) {
    if (!isClosedTo(next.task, node)) return next
  }
  return null
}

/** Returns true if the pending task has its turn before the entry in a node's queue. */
function comesBefore(task: LiveTask, entry: LiveEntry, policy: Policy, now: Instant): boolean {
  return byReturnOrder(returnOrderKeyOf(task), entry, policy, now) < 0
}

/** The request of a pending task dates from its submission. */
export function returnOrderKeyOf(task: LiveTask): ReturnOrderKey {
  return { task, askedAt: task.spec.submittedAt }
}

function firstOf(placements: readonly QueuedPlacement[]): QueuedPlacement | null {
  let first: QueuedPlacement | null = null
  for (const each of placements)
    if (first === null || byQueueOrder(each.queued, first.queued) < 0) first = each
  return first
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

function onePerShape(found: readonly QueuedPlacement[]): readonly QueuedPlacement[] {
  const byShape = new Map<string, QueuedPlacement>()
  for (const each of found) {
    const key = keyOf(each.queue.shape)
    const other = byShape.get(key)
    if (other === undefined || isPreferred(each, other)) byShape.set(key, each)
  }
  return [...byShape.values()]
}

function firstsOn(c: Cluster, node: LiveNode, now: Instant, isWanted: Wanted): readonly QueuedPlacement[] {
  const found: QueuedPlacement[] = []
  for (const queue of c.queues) {
    const queued = isWanted(queue) ? firstOn(c, node, queue, now) : null
    if (queued !== null) found.push({ queued, queue })
  }
  return found
}

/** With `fifo` no task overtakes the head of a pool. */
function headsOn(c: Cluster, node: LiveNode, now: Instant, isWanted: Wanted): readonly QueuedPlacement[] {
  const found: QueuedPlacement[] = []
  for (const { head, queue } of poolHeads(c.queues).values()) {
    const isAsked = isWanted(queue) && queue.pool.nodes.has(node) && !queue.isSetAside(head.task as LiveTask)
    if (isAsked && canTake(c, node, head, queue.shape, now)) found.push({ queued: head, queue })
  }
  return found
}

/** The first task of the queue that the node can take now or once eligible victims have left. */
function firstOn(c: Cluster, node: LiveNode, queue: PendingQueue, now: Instant): Queued | null {
  if (queue.size === 0 || queue.isLimited || !queue.pool.nodes.has(node)) return null
  const mostMib = largestOn(node, queue.shape, c.policy.maxTasksPerGpu)
  let tried = 0
  for (
    let next = queue.firstWithin(mostMib);
    next !== null && tried < MAX_TRIED;
    next = queue.nextWithin(next, mostMib)
  ) {
    if (canTake(c, node, next, queue.shape, now)) return next
    tried += 1
  }
  return null
}

function canTake(c: Cluster, node: LiveNode, queued: Queued, shape: Shape, now: Instant): boolean {
  const { policy } = c
  if (isRefusedBy(queued.task, node)) return false
  if (gpusOnNode(node, queued, shape, 'now', policy) !== null) return true
  if (shape.kind === 'exclusive') return false
  const gpus = gpusOnNode(node, queued, shape, 'after_swap', policy)
  return gpus !== null && coversPlacement(queued.task, node, gpus as readonly SwapGpu[], now)
}

/**
 * Returns the demand that each of the node's best GPUs admits, now or after a swap, ignoring reservations; as
 * many GPUs as the shape requests.
 */
function largestOn(node: LiveNode, { kind, isP0, gpuCount }: Shape, maxTasksPerGpu: number): Mib {
  const largest = (gpu: LiveGpu) =>
    Math.max(largestNowMib(gpu, kind, maxTasksPerGpu), largestAfterSwapMib(gpu, kind, isP0, maxTasksPerGpu))
  return kthLargest(node.gpus.map(largest), gpuCount)
}

/** The shape without its class: P0 and other tasks of one shape participate together. */
function keyOf({ kind, gpuCount, poolKey }: Shape): string {
  return `${kind} ${gpuCount} ${poolKey}`
}

/** 1. A P0 task. 2. The order of the pending queue. */
function isPreferred(a: QueuedPlacement, b: QueuedPlacement): boolean {
  if (a.queue.shape.isP0 !== b.queue.shape.isP0) return a.queue.shape.isP0
  return byQueueOrder(a.queued, b.queued) < 0
}
