/**
 * Where does a pending task go? The one decision of this folder: `nextPlacement` returns the next task to
 * place, and its GPUs. It reads indexes that the engine keeps (pools of GPUs, queues of pending tasks by
 * shape) and changes nothing.
 */
import type { Mib } from '../../../protocol/units.ts'
import type { PlacementStrategy, Policy } from '../../model/config.ts'
import type { Gpu, Reservation, Node } from '../../model/placement.ts'
import type { Task } from '../../model/placement.ts'
import {
  commitRoomMib,
  isClosedTo,
  isRefusedBy,
  largestAfterSwapMib,
  largestButForBytesMib,
  largestNowMib,
  NOTHING,
} from './feasible.ts'
import { isPreparedOn, needsPreparing } from './prepare.ts'
import type { Queued } from './queue.ts'
import { byQueueOrder } from './queue.ts'
import type { PlacementTiming } from './score.ts'
import { byNodeId, byScore, nodeScoreOf } from './score.ts'
import type { RequestKind, Shape } from './shape.ts'
import { kindOf, searchDemandMib } from './shape.ts'

/**
 * The GPUs of one pool, indexed by the demand they admit. GPUs with reservations are separate: what they
 * admit depends on the task.
 */
export interface PoolView {
  /** The largest demand that any GPU (or, for several GPUs, any node) without reservations admits. */
  largestMib(shape: Shape, when: PlacementTiming): Mib
  /**
   * The first GPU without reservations, in score order, that admits the demand and whose node does not refuse
   * the task. Single-GPU shapes only.
   */
  firstGpuFor(shape: Shape, when: PlacementTiming, demandMib: Mib, task: Task): Gpu | null
  /** All that admit the demand, in score order. */
  gpusFor(shape: Shape, when: PlacementTiming, demandMib: Mib): Iterable<Gpu>
  /** The nodes with enough such GPUs and without reservations, in score order. */
  nodesFor(shape: Shape, when: PlacementTiming, demandMib: Mib): Iterable<Node>
  /** Offers of GPUs with reservations, now or after a swap. */
  reservedOffers(shape: Shape): ReservedOffers
  /** GPUs with reservations that offer this task the demand, in any order. Single-GPU shapes only. */
  reservedGpusFor(shape: Shape, when: PlacementTiming, queued: Queued, demandMib: Mib): Iterable<Gpu>
  /** Nodes with reserved GPUs that offer this task the demand, in any order. */
  reservedNodesFor(shape: Shape, when: PlacementTiming, queued: Queued, demandMib: Mib): Iterable<Node>
  /** The largest demand that could ever fit there, including nodes that are down. */
  largestEverMib(shape: Shape): Mib
}

/** Tasks up to and including a holder see only the reservations ahead of them; later tasks see all. */
export interface ReservedOffers {
  readonly isEmpty: boolean
  /** The largest demand offered to any task. */
  maxMib(): Mib
  /** The largest demand offered to this task; it never grows towards the end of the queue. */
  maxFrom(queued: Queued): Mib
}

/** The pending tasks of one shape in queue order. */
export interface ShapeQueue {
  readonly shape: Shape
  readonly pool: PoolView
  /** The first task in order with at most this demand that was not set aside in this cycle. */
  firstWithin(demandMib: Mib): Queued | null
  /** The first task in order with at most this demand, set aside or not. */
  headWithin(demandMib: Mib): Queued | null
  /** As `firstWithin`, among the tasks after `previous`. */
  nextWithin(previous: Queued, demandMib: Mib): Queued | null
  /** Returns true if neither its pool nor the queue has changed since it was last found blocked. */
  isBlocked(): boolean
  /** Records that nothing in the queue fits now. */
  markBlocked(): void
  /**
   * Skips the task for this cycle: the indexes admit it, but the node refuses it, or host memory for several
   * GPUs or victims are missing.
   */
  setAside(task: Task): void
  isSetAside(task: Task): boolean
}

export interface SchedulingView {
  readonly queues: Iterable<ShapeQueue>
  readonly policy: Policy
}

/** Where a task of one shape may go. */
type PlacingQueue = Pick<ShapeQueue, 'shape' | 'pool'>

export interface Plan {
  readonly task: Task
  readonly queue: PlacingQueue
  readonly node: Node
  readonly gpus: readonly Gpu[]
  readonly when: PlacementTiming
}

/** Returns the next task to place, and where; null if no pending task fits anywhere now. */
export function nextPlacement(view: SchedulingView): Plan | null {
  return view.policy.strategy === 'fifo' ? nextInFifo(view) : nextInOrder(view)
}

/** The first task in queue order that fits somewhere; later tasks overtake those that do not fit. */
function nextInOrder(view: SchedulingView): Plan | null {
  for (;;) {
    let first: Queued | null = null
    let from: ShapeQueue | null = null
    for (const queue of view.queues) {
      if (queue.isBlocked()) continue
      const candidate = firstFitting(queue)
      if (candidate === null) queue.markBlocked()
      else if (first === null || byQueueOrder(candidate, first) < 0) {
        first = candidate
        from = queue
      }
    }
    if (first === null || from === null) return null
    const plan = placeFor(first, from, view.policy)
    if (plan !== null) return plan
    from.setAside(first.task)
  }
}

/** Only the head of each pool: nothing overtakes it. */
function nextInFifo(view: SchedulingView): Plan | null {
  let best: Plan | null = null
  let first: Queued | null = null
  for (const { head, queue } of poolHeads(view.queues).values()) {
    if (first !== null && byQueueOrder(head, first) >= 0) continue
    if (queue.isSetAside(head.task) || !mayFit(head, queue)) continue
    const plan = placeFor(head, queue, view.policy)
    if (plan !== null) [best, first] = [plan, head]
  }
  return best
}

/** The first task in order of each pool that could ever be placed there. */
export function poolHeads<Q extends ShapeQueue>(
  queues: Iterable<Q>,
): ReadonlyMap<PoolView, { readonly head: Queued; readonly queue: Q }> {
  const heads = new Map<PoolView, { readonly head: Queued; readonly queue: Q }>()
  for (const queue of queues) {
    const head = queue.headWithin(queue.pool.largestEverMib(queue.shape))
    const other = heads.get(queue.pool)
    if (head !== null && (other === undefined || byQueueOrder(head, other.head) < 0))
      heads.set(queue.pool, { head, queue })
  }
  return heads
}

/** With reservations only a try shows what they leave. */
function mayFit({ task }: Queued, queue: ShapeQueue): boolean {
  return !queue.pool.reservedOffers(queue.shape).isEmpty || searchDemandMib(task.spec) <= fittingMib(queue)
}

/** The largest demand of this shape that fits now or after a swap on GPUs without reservations. */
function fittingMib(queue: ShapeQueue): Mib {
  return Math.max(queue.pool.largestMib(queue.shape, 'now'), queue.pool.largestMib(queue.shape, 'after_swap'))
}

/**
 * The first task of a queue that the indexes admit: on GPUs without reservations, or on what reservations
 * leave to it.
 */
function firstFitting(queue: ShapeQueue): Queued | null {
  const head = queue.firstWithin(Infinity)
  // The usual case: the head fits somewhere now, so that demands after a swap need not be computed.
  if (head === null || searchDemandMib(head.task.spec) <= queue.pool.largestMib(queue.shape, 'now'))
    return head
  const free = queue.firstWithin(fittingMib(queue))
  const reserved = queue.pool.reservedOffers(queue.shape)
  if (reserved.isEmpty) return free
  // If a task is offered less than it needs, the search continues with later tasks that need no more than is
  // offered there.
  for (let next = queue.firstWithin(reserved.maxMib()); next !== null;) {
    if (free !== null && byQueueOrder(free, next) <= 0) return free
    const offeredMib = reserved.maxFrom(next)
    if (searchDemandMib(next.task.spec) <= offeredMib) return next
    next = queue.nextWithin(next, offeredMib)
  }
  return free
}

/**
 * Returns the GPUs for one task, without regard to others: where it fits now, otherwise where it fits after a
 * swap.
 */
export function placeFor(queued: Queued, queue: PlacingQueue, policy: Policy): Plan | null {
  for (const when of ['now', 'after_swap'] as const) {
    const find = (isWanted: Wanted) =>
      queue.shape.gpuCount === 1
        ? oneGpu(queued, queue, when, policy, isWanted)
        : severalGpus(queued, queue, when, policy, isWanted)
    // Prepared nodes first.
    const place = (needsPreparing(queued.task.spec) ? find(isPreparedOn) : null) ?? find(null)
    if (place !== null) return { task: queued.task, queue, node: place.node, gpus: place.gpus, when }
  }
  return null
}

interface Place {
  readonly node: Node
  readonly gpus: readonly Gpu[]
}

/** Null: any node. */
type Wanted = ((task: Task, node: Node) => boolean) | null

function oneGpu(
  queued: Queued,
  queue: PlacingQueue,
  when: PlacementTiming,
  policy: Policy,
  isWanted: Wanted,
): Place | null {
  const { task } = queued
  const demand = searchDemandMib(task.spec)
  let best =
    isWanted === null
      ? queue.pool.firstGpuFor(queue.shape, when, demand, task)
      : firstWanted(queue.pool.gpusFor(queue.shape, when, demand), task, isWanted)
  for (const gpu of queue.pool.reservedGpusFor(queue.shape, when, queued, demand)) {
    if (isRefusedBy(task, gpu.node) || isWanted?.(task, gpu.node) === false) continue
    if (best === null || byScore(gpu, best, when, policy.strategy, demand) < 0) best = gpu
  }
  return best === null ? null : { node: best.node, gpus: [best] }
}

function firstWanted(gpus: Iterable<Gpu>, task: Task, isWanted: NonNullable<Wanted>): Gpu | null {
  for (const gpu of gpus) if (isWanted(task, gpu.node) && !isRefusedBy(task, gpu.node)) return gpu
  return null
}

function severalGpus(
  queued: Queued,
  queue: PlacingQueue,
  when: PlacementTiming,
  policy: Policy,
  isWanted: Wanted,
): Place | null {
  for (const node of nodesInOrder(queued, queue, when, policy.strategy)) {
    if (isRefusedBy(queued.task, node) || isWanted?.(queued.task, node) === false) continue
    const gpus = gpusOnNode(node, queued, queue.shape, when, policy)
    if (gpus !== null) return { node, gpus }
  }
  return null
}

/**
 * Nodes that admit it without a reservation, and nodes with reserved GPUs that offer it enough, merged by
 * score.
 */
function* nodesInOrder(
  queued: Queued,
  queue: PlacingQueue,
  when: PlacementTiming,
  strategy: PlacementStrategy,
): Generator<Node> {
  const demand = searchDemandMib(queued.task.spec)
  const reserved = [...queue.pool.reservedNodesFor(queue.shape, when, queued, demand)].sort((a, b) =>
    byNodeScore(a, b, when, strategy),
  )
  let nextReserved = 0
  for (const node of queue.pool.nodesFor(queue.shape, when, demand)) {
    for (; nextReserved < reserved.length; nextReserved++) {
      const other = reserved[nextReserved] as Node
      if (byNodeScore(other, node, when, strategy) > 0) break
      yield other
    }
    if (!reserved.includes(node)) yield node
  }
  yield* reserved.slice(nextReserved)
}

/**
 * The GPUs of one node for a task: first those where it fits now, then by score; null if there are too few.
 */
export function gpusOnNode(
  node: Node,
  queued: Queued,
  shape: Shape,
  when: PlacementTiming,
  policy: Policy,
): readonly Gpu[] | null {
  const demand = searchDemandMib(queued.task.spec)
  const fitting = (w: PlacementTiming) =>
    node.gpus.filter((gpu) => admissibleMib(gpu, queued, shape, w, policy) >= demand)
  const now = fitting('now').sort((a, b) => byScore(a, b, 'now', policy.strategy, demand))
  const later = when === 'now' ? [] : fitting('after_swap').filter((gpu) => !now.includes(gpu))
  const chosen = [...now, ...later.sort((a, b) => byScore(a, b, when, policy.strategy, demand))].slice(
    0,
    shape.gpuCount,
  )
  return chosen.length === shape.gpuCount && hasHostRoom(chosen, demand, shape.kind) ? chosen : null
}

/**
 * Returns true if the task would be admitted on these GPUs of one node once enough swappable tasks there have
 * left.
 */
export function lacksOnlyVram(task: Task, gpus: readonly Gpu[], maxTasksPerGpu: number): boolean {
  const kind = kindOf(task.spec)
  const demand = searchDemandMib(task.spec)
  const [first] = gpus
  if (first === undefined || isClosedTo(task, first.node)) return false
  return (
    gpus.every((gpu) => largestButForBytesMib(gpu, kind, maxTasksPerGpu) >= demand) &&
    hasHostRoom(gpus, demand, kind)
  )
}

/** Several GPUs of one node share its host memory: their promises are added (SWAP_SPACE_EXHAUSTED). */
function hasHostRoom(gpus: readonly Gpu[], demandMib: Mib, kind: RequestKind): boolean {
  const node = (gpus[0] as Gpu).node
  let promised = node.hostPromisedMib
  for (const gpu of gpus) {
    const committed = gpu.noswapMib + gpu.swappableMib
    const before = committed > gpu.capacityMib ? gpu.swappableMib : 0
    const swappable = gpu.swappableMib + (kind === 'swappable' ? demandMib : 0)
    promised += (committed + demandMib > gpu.capacityMib ? swappable : 0) - before
  }
  return promised <= node.hostSwapMib || promised === node.hostPromisedMib
}

/** The largest demand that a GPU admits for this task: its limit less the reservations of tasks ahead. */
export function admissibleMib(
  gpu: Gpu,
  queued: Queued,
  shape: Shape,
  when: PlacementTiming,
  policy: Policy,
): Mib {
  const largest =
    when === 'now'
      ? largestNowMib(gpu, shape.kind, policy.maxTasksPerGpu)
      : largestAfterSwapMib(gpu, shape.kind, shape.isP0, policy.maxTasksPerGpu)
  let keptMib = 0
  let keptRoomMib = 0
  for (const reservation of gpu.reservations) {
    if (reservation.task === queued.task || byQueueOrder(queued, reservation) < 0) continue
    if (reservation.isExclusive) return NOTHING
    keptMib = Math.max(keptMib, reservation.mib)
    if (keepsCommitRoom(reservation)) keptRoomMib = Math.max(keptRoomMib, reservation.mib)
  }
  return leftByReservationsMib(gpu, shape.kind, largest, keptMib, keptRoomMib)
}

/**
 * Returns true for the head of swappable tasks, which reserves commit room: noswap tasks use it although the
 * commit limit does not apply to them.
 */
export function keepsCommitRoom({ by, task }: Reservation): boolean {
  return by === 'head' && kindOf(task.spec) === 'swappable'
}

/**
 * Returns the part of `largestMib` that reservations leave. A noswap task also leaves the reserved commit
 * room.
 */
export function leftByReservationsMib(
  gpu: Gpu,
  kind: RequestKind,
  largestMib: Mib,
  keptMib: Mib,
  keptRoomMib: Mib,
): Mib {
  const leftMib = largestMib - keptMib
  return kind === 'noswap' && keptRoomMib > 0 ? Math.min(leftMib, commitRoomMib(gpu) - keptRoomMib) : leftMib
}

function byNodeScore(a: Node, b: Node, when: PlacementTiming, strategy: PlacementStrategy): number {
  const left = nodeScoreOf(a, when, strategy)
  const right = nodeScoreOf(b, when, strategy)
  return left.key1 - right.key1 || left.key2 - right.key2 || byNodeId(a, b)
}
