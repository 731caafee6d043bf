/**
 * The two figures of an entry on one GPU (semantics section 1), MiB. Claimants are in the order of their
 * reservations, and each counts only those before it: it was covered on top of them, and a collector, which
 * is not covered yet, takes nothing from earlier ones (docs/decisions/0010-owners-in-order.md).
 */
import type { Mib } from '../../../protocol/units.ts'
import { movableMib } from '../../model/placement.ts'
import type { Gpu } from '../../model/placement.ts'
import type { QueueEntry } from '../../model/placement.ts'

/**
 * free(e): physically free for this entry now, without VRAM reserved by others; what still moves out for a
 * claimant is not counted twice.
 */
export function freeForMib(gpu: Gpu, entry: QueueEntry): Mib {
  let kept = 0
  for (const claimant of gpu.claimants) {
    if (claimant === entry) break
    kept += Math.max(0, claimant.needMib - movingOutForMib(gpu, claimant))
  }
  return gpu.capacityMib - gpu.noswapResidentMib - gpu.swappableResidentMib - kept
}

/** short(e): the shortage once everything on its way out has left; 0 or less means that waiting is enough. */
export function shortMib(gpu: Gpu, entry: QueueEntry): Mib {
  let reservedMib = 0
  for (const claimant of gpu.claimants) {
    if (claimant === entry) break
    reservedMib += claimant.needMib
  }
  return (
    entry.needMib -
    (gpu.capacityMib - gpu.noswapResidentMib - gpu.swappableResidentMib + gpu.movingOutMib - reservedMib)
  )
}

/** out_o: MiB on this GPU still moving out for a claimant. */
export function movingOutForMib(gpu: Gpu, claimant: QueueEntry): Mib {
  if (gpu.movingOutMib === 0) return 0
  let mib = 0
  for (const placement of gpu.placements) {
    if (placement.residency === 'swapping_out' && placement.leavesFor === claimant)
      mib += movableMib(placement)
  }
  return mib
}

/**
 * The most an entry could ever have on a GPU while noswap tasks and foreign memory stay: C − N of the others.
 * A noswap task that grows leaves room for the largest swappable one to return (semantics section 1,
 * "growth").
 */
export function attainableMib(gpu: Gpu, entry: QueueEntry): Mib {
  const placement = entry.task.placement?.noswap === 1 ? entry.task.placement : null
  const ownMib = placement?.demandMib ?? 0
  const stranded = entry.kind === 'growth' && placement !== null ? gpu.largestSwappableMib : 0
  const claimed =
    entry.kind === 'placement' && entry.hasReserved && entry.task.spec.noswap === 1 ? entry.needMib : 0
  return gpu.capacityMib - gpu.noswapMib + ownMib + claimed - stranded
}
