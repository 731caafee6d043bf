/**
 * Which waiting tasks reserve which GPUs: the head of a pool those with its least shortfall (semantics 4), an
 * aged entry of a node's queue its own (semantics 5).
 */
import type { Instant, Mib } from '../../protocol/units.ts'
import type { Policy } from '../model/config.ts'
import type { Gpu, Node, QueueEntry, Reservation, Task } from '../model/placement.ts'
import { isClosedTo, isPlaceable, largestEverMib, reservationRoomMib } from './placement/feasible.ts'
import type { Queued } from './placement/queue.ts'
import { byGpuId } from './placement/score.ts'
import { kindOf, searchDemandMib } from './placement/shape.ts'
import { shortMib } from './swap/bytes.ts'
import { arrivingMib, couldLeaveMib } from './swap/eligible.ts'

/** GPUs of one node for a task, and its shortfall on the worst of them. */
export interface Shortfall<G extends Gpu> {
  readonly gpus: readonly G[]
  readonly missingMib: Mib
}

type NodeOf<G extends Gpu> = Omit<Node, 'gpus'> & { readonly gpus: readonly G[] }

/**
 * Returns the GPUs of the first node that could take the task.
 * @param nodes least shortfall first
 */
export function leastShortfall<G extends Gpu>(nodes: Iterable<NodeOf<G>>, task: Task): Shortfall<G> | null {
  for (const node of nodes) {
    const gpus = gpusWithLeastShortfall(node, task)
    if (gpus !== null) return { gpus, missingMib: shortfallOn(gpus, task) }
  }
  return null
}

/** 1. Less shortfall. 2. More free VRAM. 3. Node id, GPU index. */
function gpusWithLeastShortfall<G extends Gpu>(node: NodeOf<G>, task: Task): readonly G[] | null {
  if (!isPlaceable(node) || isClosedTo(task, node)) return null
  const demand = searchDemandMib(task.spec)
  const gpus = node.gpus
    .filter((gpu) => largestEverMib(gpu) >= demand)
    .sort((a, b) => shortfallMib(a, task) - shortfallMib(b, task) || b.freeMib - a.freeMib || byGpuId(a, b))
    .slice(0, task.spec.gpuCount)
  return gpus.length === task.spec.gpuCount ? gpus : null
}

/** The largest shortfall among the GPUs: the task starts on all or none. */
export function shortfallOn(gpus: readonly Gpu[], task: Task): Mib {
  return gpus.reduce((most, gpu) => Math.max(most, shortfallMib(gpu, task)), 0)
}

/** For an exclusive task everything that is placed counts, whatever its demand (semantics 4). */
function shortfallMib(gpu: Gpu, task: Task): Mib {
  const kind = kindOf(task.spec)
  const demandMib = kind === 'exclusive' ? 0 : searchDemandMib(task.spec)
  return Math.max(0, demandMib - reservationRoomMib(gpu, kind))
}

/** Returns why an entry reserves none of its GPUs; null if it reserves them. */
export function whyNotReserving(
  entry: QueueEntry,
  { reservationAfterMs }: Policy,
  now: Instant,
): 'HAS_RESERVED' | 'RESERVES_AS_PENDING' | 'NOT_AGED' | 'BEHIND_P0' | null {
  if (entry.hasReserved) return 'HAS_RESERVED'
  if (entry.kind === 'placement') return 'RESERVES_AS_PENDING'
  if (now - entry.askedAt < reservationAfterMs) return 'NOT_AGED'
  return isBehindP0Only(entry) ? 'BEHIND_P0' : null
}

/**
 * P0 tasks that it may not swap out block the entry for as long as they stay (semantics 5, second exception).
 * A task that is about to be resident can leave later.
 */
function isBehindP0Only(entry: QueueEntry): boolean {
  const { gpus, task } = entry
  return gpus.some((gpu) => shortMib(gpu, entry) > couldLeaveMib(gpu, task) + arrivingMib(gpu, task))
}

export function reservationOfEntry({ task, needMib }: QueueEntry): Reservation {
  return { by: 'entry', task, queueClass: task.spec.priority, mib: needMib, isExclusive: false }
}

export function reservationOfHead({ task, queueClass }: Queued): Reservation {
  return {
    by: 'head',
    task,
    queueClass,
    mib: searchDemandMib(task.spec),
    isExclusive: task.spec.gpuMode === 'exclusive',
  }
}

/** Its class may rise with its wait, and both may be changed while it waits. */
export function isSameReservation(a: Reservation | undefined, b: Reservation): boolean {
  return a?.task === b.task && a.queueClass === b.queueClass && a.mib === b.mib
}

/** Returns true if `other` keeps at least as much from the same tasks as `reservation`. */
export function reservesAsMuch(other: Reservation, reservation: Reservation): boolean {
  return (
    other === reservation ||
    (other.task === reservation.task &&
      other.queueClass === reservation.queueClass &&
      other.mib >= reservation.mib &&
      other.isExclusive === reservation.isExclusive)
  )
}
