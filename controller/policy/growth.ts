/** Outcome of a growth that has waited `reservation_after_seconds` (semantics 1, "growth"). */
import type { Instant } from '../../protocol/units.ts'
import { movableMib } from '../model/placement.ts'
import type { Placement, QueueEntry } from '../model/placement.ts'
import { hasHostRoomToGrow } from './placement/feasible.ts'
import { couldEverBeResident } from './swap/resume.ts'

export type GrowthDecision =
  | {
      readonly kind: 'refuse'
      readonly reason: 'WAITING_PHYSICAL_VRAM' | 'RESIDENCY_IMPOSSIBLE' | 'SWAP_SPACE_EXHAUSTED'
    }
  /** The task leaves VRAM and returns with the larger demand. */
  | { readonly kind: 'return_grown' }
  | { readonly kind: 'wait' }

/**
 * 1. A noswap task is refused: nothing could leave but the task itself.
 * 2. A growth that can never be resident, or that host memory could not hold, is refused.
 * 3. A task without reserved VRAM leaves, to return grown, if it is resident, no swap of it failed lately,
 *    and host memory takes it.
 */
export function decideOldGrowth(entry: QueueEntry, placement: Placement, now: Instant): GrowthDecision {
  const { node, gpus, residency, backOffUntil, noswap } = placement
  if (noswap === 1) return { kind: 'refuse', reason: 'WAITING_PHYSICAL_VRAM' }
  if (!couldEverBeResident(entry)) return { kind: 'refuse', reason: 'RESIDENCY_IMPOSSIBLE' }
  if (!hasHostRoomToGrow(entry.gpus, entry.needMib, false))
    return { kind: 'refuse', reason: 'SWAP_SPACE_EXHAUSTED' }
  const isRoomInHost = node.hostUsedMib + movableMib(placement) * gpus.length <= node.hostSwapMib
  const mayLeave = !entry.hasReserved && residency === 'resident' && now >= backOffUntil && isRoomInHost
  return { kind: mayLeave ? 'return_grown' : 'wait' }
}
