/** Members of a pool: GPUs and nodes have a number there, which identifies them in its indexes. */
import type { Mib } from '../../../protocol/units.ts'
import type { PlacementTiming } from '../../policy/placement/score.ts'
import type { GpuIndex, LiveGpu, LiveNode } from '../facts.ts'

/** The pool of a member. */
export interface MemberPool {
  mark(member: PoolMember, areFiguresChanged: boolean): void
  markEligibleBytes(member: PoolMember): void
}

/** A GPU in a pool. */
export class PoolMember implements GpuIndex {
  readonly gpu: LiveGpu
  readonly number: number
  /** This GPU alone, as offered to tasks on one GPU. */
  readonly unit: Unit
  readonly node: NodeMember
  readonly #pool: MemberPool

  constructor(pool: MemberPool, gpu: LiveGpu, number: number, node: NodeMember) {
    this.#pool = pool
    this.gpu = gpu
    this.number = number
    this.unit = { number, firstMember: number, members: [this] }
    this.node = node
  }

  ledgerChanged(areFiguresChanged: boolean): void {
    this.#pool.mark(this, areFiguresChanged)
  }

  eligibleBytesChanged(): void {
    this.#pool.markEligibleBytes(this)
  }
}

/** The columns of a table of members, by member number. */
export interface MemberColumns {
  readonly when: PlacementTiming
  readonly columns: number
  readonly key1: Float64Array
  readonly key2: Float64Array
  /** By member and column: the largest demand it admits, ignoring its reservations. */
  readonly admitsMib: Float64Array
  /** It has reservations. */
  readonly hasReservations: Uint8Array
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
