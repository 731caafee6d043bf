/** Members of a pool: GPUs and nodes have a number there, which identifies them in its indexes. */
import type { Mib } from '../../../protocol/units.ts'
import type { LiveGpu, LiveNode } from '../facts.ts'
import type { Pool } from './pool.ts'

/** A GPU in a pool. */
export interface PoolMember {
  readonly pool: Pool
  readonly gpu: LiveGpu
  readonly number: number
  /** This GPU alone, as offered to tasks on one GPU. */
  readonly unit: Unit
  readonly node: NodeMember
}

/** A node in a pool. */
export interface NodeMember {
  readonly node: LiveNode
  readonly number: number
  /** All its GPUs, as offered to tasks on several. */
  readonly unit: Unit
  isMember: boolean
}

/** GPUs that are offered together: one GPU, or all of a node. */
export interface Unit {
  readonly number: number
  /** Number of its first member; the others follow. */
  readonly firstMember: number
  readonly members: PoolMember[]
}

export function hasReservations(unit: Unit): boolean {
  for (const { gpu } of unit.members) if (gpu.reservations.length > 0) return true
  return false
}

/** Sorts in place, descending; for a few numbers that are nearly sorted. */
export function sortDescending(mibs: Mib[]): void {
  for (let from = 1; from < mibs.length; from++) {
    const mib = mibs[from] as Mib
    let at = from
    for (; at > 0 && (mibs[at - 1] as Mib) < mib; at--) mibs[at] = mibs[at - 1] as Mib
    mibs[at] = mib
  }
}
