/**
 * A node's queue (semantics 5, "Return"): what keeps an entry from being served, which entry collects, and
 * which pending tasks take their turns in it.
 */
import type { Instant, Mib } from '../../protocol/units.ts'
import type { Policy } from '../model/config.ts'
import type { Gpu, QueueEntry, Task } from '../model/placement.ts'
import type { SwapNode } from './place-alone.ts'
import { whenPlacedOn } from './place-alone.ts'
import {
  hasHostRoomToGrow,
  isClosedTo,
  isPlaceable,
  isRefusedBy,
  kthLargest,
  largestAfterSwapMib,
  largestButForVramMib,
  largestNowMib,
} from './placement/feasible.ts'
import type { Queued } from './placement/queue.ts'
import { byQueueOrder } from './placement/queue.ts'
import type { ShapeQueue } from './placement/schedule.ts'
import { lacksOnlyVram } from './placement/schedule.ts'
import type { Shape } from './placement/shape.ts'
import type { ReturnOrderKey } from './swap/resume.ts'
import { byReturnOrder, nextCollector } from './swap/resume.ts'

/** Obstacles other than VRAM that prevent the service of an entry. */
export type EntryObstacle = 'BACKING_OFF' | 'NODE_CLOSED' | 'SWAP_SPACE_EXHAUSTED'

/**
 * Returns null if nothing but VRAM may be missing. An entry with an obstacle releases its reservation.
 * 1. A task that has not started goes elsewhere if the node is closed, silent or full, or left its pool.
 * 2. After a failed swap-in the next attempt is delayed.
 * 3. Above C all swappable tasks of a GPU must fit in host memory at once, also when a growth exceeds C.
 * @param isInPool the node is in the pool of the task
 */
export function obstacleTo(entry: QueueEntry, isInPool: boolean, now: Instant): EntryObstacle | null {
  const { kind, node, gpus, needMib, task } = entry
  switch (kind) {
    case 'placement':
      return isPlaceable(node) && node.attemptCount <= node.maxAttempts && isInPool ? null : 'NODE_CLOSED'
    case 'swap_in':
      return (task.placement?.backOffUntil ?? 0) > now ? 'BACKING_OFF' : null
    case 'growth':
      return hasHostRoomToGrow(gpus, needMib, task.placement?.noswap === 1) ? null : 'SWAP_SPACE_EXHAUSTED'
  }
}

/** Returns the entry that should collect on a node without a collector: only VRAM blocks it. */
export function chooseCollector<E extends QueueEntry>(
  queue: readonly E[],
  policy: Policy,
  now: Instant,
): E | null {
  const isBlockedByVramOnly = (entry: E): boolean =>
    entry.kind === 'placement'
      ? lacksOnlyVram(entry.task, entry.gpus, policy.maxTasksPerGpu)
      : obstacleTo(entry, true, now) === null
  return nextCollector(queue, isBlockedByVramOnly, policy, now)
}

/** Returns true if the collector releases its reservation where a P0 task would be covered without it. */
export function yieldsToP0(collector: QueueEntry): boolean {
  return collector.task.spec.priority !== 0
}

// ── pending tasks ─────────────────────────────────────────────────────────────

/** A pending task that takes its turn in a node's queue, and the queue that it waits in. */
export interface PendingTurn<Q extends ShapeQueue> {
  readonly queued: Queued
  readonly queue: Q
}

/**
 * Maximum number of tasks of one shape tried on a node: its indexes may admit a task that its reservations or
 * victims do not.
 */
const MAX_TRIED = 16

/** Returns true if the pending task has its turn before the entry. */
export function comesBefore(task: Task, entry: QueueEntry, policy: Policy, now: Instant): boolean {
  return byReturnOrder(returnOrderKeyOf(task), entry, policy, now) < 0
}

/** The request of a pending task dates from its submission. */
export function returnOrderKeyOf(task: Task): ReturnOrderKey {
  return { task, askedAt: task.spec.submittedAt }
}

/** Returns one task of each shape: a P0 task if there is one, otherwise the first in the pending queue. */
export function onePerShape<Q extends ShapeQueue>(
  found: readonly PendingTurn<Q>[],
): readonly PendingTurn<Q>[] {
  const byShape = new Map<string, PendingTurn<Q>>()
  for (const each of found) {
    const key = keyOf(each.queue.shape)
    const other = byShape.get(key)
    if (other === undefined || isPreferred(each, other)) byShape.set(key, each)
  }
  return [...byShape.values()]
}

export function firstTurn<Q extends ShapeQueue>(turns: readonly PendingTurn<Q>[]): PendingTurn<Q> | null {
  let first: PendingTurn<Q> | null = null
  for (const each of turns) if (first === null || byQueueOrder(each.queued, first.queued) < 0) first = each
  return first
}

/**
 * Returns the first pending task of the queue that lacks nothing but VRAM on the node, using at least one of
 * these GPUs; null if none exists.
 */
export function firstWaitingFor(
  queue: ShapeQueue,
  node: SwapNode,
  gpus: readonly Gpu[],
  maxTasksPerGpu: number,
): Queued | null {
  const { kind, gpuCount } = queue.shape
  const but = (gpu: Gpu) => largestButForVramMib(gpu, kind, maxTasksPerGpu)
  const mostMib = Math.min(kthLargest(node.gpus.map(but), gpuCount), kthLargest(gpus.map(but), 1))
  for (let next = queue.headWithin(mostMib); next !== null; next = queue.nextWithin(next, mostMib)) {
    if (!isClosedTo(next.task, node)) return next
  }
  return null
}

/** The first task of the queue that the node can take now or once eligible victims have left. */
export function firstTakenBy(node: SwapNode, queue: ShapeQueue, policy: Policy, now: Instant): Queued | null {
  const mostMib = largestOn(node, queue.shape, policy.maxTasksPerGpu)
  let tried = 0
  for (
    let next = queue.firstWithin(mostMib);
    next !== null && tried < MAX_TRIED;
    next = queue.nextWithin(next, mostMib)
  ) {
    if (canTake(node, next, queue.shape, policy, now)) return next
    tried += 1
  }
  return null
}

export function canTake(node: SwapNode, queued: Queued, shape: Shape, policy: Policy, now: Instant): boolean {
  return !isRefusedBy(queued.task, node) && whenPlacedOn(node, queued, shape, policy, now) !== null
}

/**
 * Returns the demand that each of the node's best GPUs admits, now or after a swap, ignoring reservations; as
 * many GPUs as the shape requests.
 */
function largestOn(node: SwapNode, { kind, isP0, gpuCount }: Shape, maxTasksPerGpu: number): Mib {
  const largest = (gpu: Gpu) =>
    Math.max(largestNowMib(gpu, kind, maxTasksPerGpu), largestAfterSwapMib(gpu, kind, isP0, maxTasksPerGpu))
  return kthLargest(node.gpus.map(largest), gpuCount)
}

/** The shape without its class: P0 and other tasks of one shape participate together. */
function keyOf({ kind, gpuCount, poolKey }: Shape): string {
  return `${kind} ${gpuCount} ${poolKey}`
}

/** 1. A P0 task. 2. The order of the pending queue. */
function isPreferred<Q extends ShapeQueue>(a: PendingTurn<Q>, b: PendingTurn<Q>): boolean {
  if (a.queue.shape.isP0 !== b.queue.shape.isP0) return a.queue.shape.isP0
  return byQueueOrder(a.queued, b.queued) < 0
}
