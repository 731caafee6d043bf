/**
 * GPUs and nodes in a pool: each has a number there, and what stands about it in an index stands under that
 * number.
 */
import type { Mib } from '../../../protocol/units.ts'
import type { LiveGpu, LiveNode } from '../live.ts'
import type { Pool } from './pool.ts'

/** A GPU in a pool. */
export interface PoolMember {
  readonly pool: Pool
  readonly gpu: LiveGpu
  readonly number: number
  /** This GPU alone: what a task on one GPU is offered. */
  readonly unit: Unit
  readonly node: NodeMember
}

/** A node in a pool. */
export interface NodeMember {
  readonly node: LiveNode
  readonly number: number
  /** All its GPUs: what a task on several is offered. */
  readonly unit: Unit
  isMember: boolean
}

/** GPUs that are offered together: one GPU, or all of a node. */
export interface Unit {
  readonly number: number
  /** Number of the first of its seats; those of the others follow. */
  readonly firstMember: number
  readonly members: PoolMember[]
}

export function hasReservations(unit: Unit): boolean {
  for (const { gpu } of unit.members) if (gpu.reservations.length > 0) return true
  return false
}

/** Descending, in place: a few numbers, nearly in order. */
export function sortDescending(mibs: Mib[]): void {
  for (let from = 1; from < mibs.length; from++) {
    const mib = mibs[from] as Mib
    let at = from
    for (; at > 0 && (mibs[at - 1] as Mib) < mib; at--) mibs[at] = mibs[at - 1] as Mib
    mibs[at] = mib
  }
}
