/** The node's queue: the order in which entries are served, and which may collect (semantics 5, "Return"). */
import { byCodeUnits, firstDifference } from '../../structures/order.ts'
import type { Instant } from '../../../protocol/units.ts'
import type { Policy } from '../../model/config.ts'
import { movableMib } from '../../model/placement.ts'
import type { QueueEntry } from '../../model/placement.ts'
import { couldLeaveMib } from './eligible.ts'
import { attainableMib, shortMib } from './bytes.ts'

/**
 * The properties of an entry, or of a pending task, that decide its position in a node's queue. The request
 * of a pending task dates from its submission.
 */
export type ReturnOrderKey = Pick<QueueEntry, 'task' | 'askedAt'>

/** 0 for P0 and for entries that have waited `swap_in_aging_seconds`, otherwise 1. */
function rankOf(entry: ReturnOrderKey, policy: Policy, now: Instant): 0 | 1 {
  return entry.task.spec.priority === 0 || hasAged(entry, policy, now) ? 0 : 1
}

function hasAged(entry: ReturnOrderKey, policy: Policy, now: Instant): boolean {
  return now - entry.askedAt >= policy.swapInAgingMs
}

/**
 * Order in which the entries of a node are served.
 * 1. P0, and entries that have waited long enough to rank with P0.
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

/** Insertion sort: a queue is nearly sorted, so that each entry moves only a little. */
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
const byCollectorOrder = firstDifference<QueueEntry>(
  (a, b) => Number(a.task.spec.priority !== 0) - Number(b.task.spec.priority !== 0),
  (a, b) => a.askedAt - b.askedAt,
  (a, b) => byCodeUnits(a.task.spec.id, b.task.spec.id),
)

/**
 * The entry that should collect on a node without a collector: it has waited long, has nothing reserved, and
 * swapping placed tasks could cover it.
 * @param mayCollect returns true if only VRAM blocks the entry
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
 * Returns false for RESIDENCY_IMPOSSIBLE: noswap tasks and foreign memory alone leave too little on some GPU.
 */
export function couldEverBeResident(entry: QueueEntry): boolean {
  const { placement } = entry.task
  const held = entry.kind === 'growth' && placement !== null ? movableMib(placement) : 0
  for (const gpu of entry.gpus) if (held + entry.needMib > attainableMib(gpu, entry)) return false
  return true
}

function couldBeCovered(entry: QueueEntry): boolean {
  return (
    couldEverBeResident(entry) &&
    entry.gpus.every((gpu) => shortMib(gpu, entry) <= couldLeaveMib(gpu, entry.task))
  )
}
