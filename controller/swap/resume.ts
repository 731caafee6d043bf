/** The node's queue: in which order entries are served, and who may collect (semantics 5, "Return"). */
import { byCodeUnits, firstDifference } from '../domain/order.ts'
import type { Instant } from '../../protocol/units.ts'
import type { Policy } from '../domain/config.ts'
import type { QueueEntry } from '../domain/task.ts'
import { couldLeaveMib } from './eligible.ts'
import { attainableMib, shortMib } from './bytes.ts'

/**
 * What of an entry, or of a pending task, decides its turn in a node's queue. A pending task asks from its
 * submission on.
 */
export type ReturnOrderKey = Pick<QueueEntry, 'task' | 'askedAt'>

/** 0 for P0 and for those that have waited `swap_in_aging_seconds`, else 1. */
export function rankOf(entry: ReturnOrderKey, policy: Policy, now: Instant): 0 | 1 {
  return entry.task.spec.priority === 0 || hasAged(entry, policy, now) ? 0 : 1
}

export function hasAged(entry: ReturnOrderKey, policy: Policy, now: Instant): boolean {
  return now - entry.askedAt >= policy.swapInAgingMs
}

/**
 * Which entry of a node is served first.
 * 1. P0, and those that have waited so long that they rank with P0.
 * 2. Earlier request.
 * 3. Task id, so that the order is total.
 */
export function byReturnOrder(a: ReturnOrderKey, b: ReturnOrderKey, policy: Policy, now: Instant): number {
  return (
    rankOf(a, policy, now) - rankOf(b, policy, now) ||
    a.askedAt - b.askedAt ||
    byCodeUnits(a.task.spec.id, b.task.spec.id)
  )
}

/** A queue is nearly in this order as it stands, so each entry moves up only a little. */
export function inReturnOrder<E extends QueueEntry>(
  queue: readonly E[],
  policy: Policy,
  now: Instant,
): readonly E[] {
  const inOrder = [...queue]
  for (let place = 1; place < inOrder.length; place++) {
    const entry = inOrder[place] as E
    let at = place
    for (; at > 0 && byReturnOrder(entry, inOrder[at - 1] as E, policy, now) < 0; at--)
      inOrder[at] = inOrder[at - 1] as E
    inOrder[at] = entry
  }
  return inOrder
}

/** Which entry becomes the collector: P0 first, then the oldest. */
export const byCollectorOrder = firstDifference<QueueEntry>(
  (a, b) => Number(a.task.spec.priority !== 0) - Number(b.task.spec.priority !== 0),
  (a, b) => a.askedAt - b.askedAt,
  (a, b) => byCodeUnits(a.task.spec.id, b.task.spec.id),
)

/**
 * The entry that should collect on a node that has no collector: waited long, owns nothing, and swapping
 * placed tasks could cover it.
 * @param mayCollect whether nothing else than bytes is in its way
 */
export function nextCollector<E extends QueueEntry>(
  queue: readonly E[],
  mayCollect: (entry: E) => boolean,
  policy: Policy,
  now: Instant,
): E | null {
  let best: E | null = null
  for (const entry of queue) {
    if (entry.hasReserved || !hasAged(entry, policy, now) || !mayCollect(entry) || !couldBeCovered(entry))
      continue
    if (best === null || byCollectorOrder(entry, best) < 0) best = entry
  }
  return best
}

/**
 * RESIDENCY_IMPOSSIBLE when this is false: noswap tasks and foreign memory alone leave it too little on some
 * GPU.
 */
export function couldEverBeResident(entry: QueueEntry): boolean {
  const held = entry.kind === 'growth' ? (entry.task.placement?.demandMib ?? 0) : 0
  for (const gpu of entry.gpus) if (held + entry.needMib > attainableMib(gpu, entry)) return false
  return true
}

function couldBeCovered(entry: QueueEntry): boolean {
  return (
    couldEverBeResident(entry) &&
    entry.gpus.every((gpu) => shortMib(gpu, entry) <= couldLeaveMib(gpu, entry.task))
  )
}
