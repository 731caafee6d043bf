/**
 * What a pool compares of its GPUs, now or after a swap: the keys of their order and the largest demand that
 * they admit, in columns by member number. Changed GPUs are only marked; their figures are derived when
 * needed.
 */
import type { Mib } from '../../../protocol/units.ts'
import type { Policy } from '../../model/config.ts'
import { grownColumn, grownFlags } from '../../structures/columns.ts'
import { clear } from '../../structures/list-edit.ts'
import type { Reservation } from '../../model/placement.ts'
import { largestAfterSwapMib, largestNowMib, NOTHING } from '../../policy/placement/feasible.ts'
import type { PlacementTiming } from '../../policy/placement/score.ts'
import { key1Of, key2Of } from '../../policy/placement/score.ts'
import type { RequestKind } from '../../policy/placement/shape.ts'
import { PoolRanking } from './pool-ranking.ts'
import type { LiveGpu } from '../facts.ts'
import { kindOfColumn, KINDS_AFTER, KINDS_NOW } from './request-columns.ts'
import { CapacityGainLog } from './capacity-gain-log.ts'
import type { MemberColumns, NodeMember, PoolMember } from './pool-members.ts'

const FIRST_ROOM = 64

export class MemberTable implements MemberColumns {
  readonly when: PlacementTiming
  readonly columns: number
  key1 = new Float64Array(FIRST_ROOM)
  key2 = new Float64Array(FIRST_ROOM)
  /** By member and column: the largest demand it admits, ignoring its reservations. */
  admitsMib: Float64Array
  /** By member: it has reservations. */
  hasReservations = new Uint8Array(FIRST_ROOM)
  /** By column: gains of GPUs that admit more than before. */
  readonly capacityGains: readonly CapacityGainLog[]
  readonly #policy: Policy
  /** The reservations with which its figures were derived: a new list whenever they change. */
  readonly #reservations: (readonly Reservation[] | undefined)[] = []
  readonly #stale: PoolMember[] = []
  #isStale = new Uint8Array(FIRST_ROOM)
  readonly #derived: Float64Array
  /** By number of GPUs requested. */
  readonly #rankings: (PoolRanking | undefined)[] = []

  constructor(when: PlacementTiming, policy: Policy, nodes: Iterable<NodeMember>) {
    this.when = when
    this.#policy = policy
    this.columns = when === 'now' ? KINDS_NOW.length : 2 * KINDS_AFTER.length
    this.admitsMib = new Float64Array(FIRST_ROOM * this.columns).fill(NOTHING)
    this.capacityGains = Array.from({ length: this.columns }, () => new CapacityGainLog())
    this.#derived = new Float64Array(this.columns)
    for (const { unit } of nodes) for (const member of unit.members) this.mark(member)
  }

  /** The GPU's ledger, node or reservations changed. */
  mark(member: PoolMember): void {
    const { number } = member
    if (number >= this.#isStale.length) this.#grow(number)
    if (this.#isStale[number] === 1) return
    this.#isStale[number] = 1
    this.#stale.push(member)
  }

  /** Derives the figures of marked GPUs. */
  catchUp(): void {
    if (this.#stale.length === 0) return
    for (let at = 0; at < this.#stale.length; at++) {
      const member = this.#stale[at] as PoolMember
      this.#isStale[member.number] = 0
      if (!member.node.isMember || !this.#derive(member)) continue
      for (const ranking of this.#rankings) if (ranking !== undefined) ranking.mark(member)
    }
    clear(this.#stale)
  }

  /** @param nodes all members of the pool */
  rankingFor(gpuCount: number, nodes: Iterable<NodeMember>): PoolRanking {
    this.catchUp()
    let ranking = this.#rankings[gpuCount]
    if (ranking === undefined) {
      ranking = new PoolRanking(this, gpuCount)
      this.#rankings[gpuCount] = ranking
      for (const { unit } of nodes) for (const member of unit.members) ranking.mark(member)
    }
    ranking.catchUp()
    return ranking
  }

  /** The node has left this pool. */
  drop(node: NodeMember): void {
    for (const ranking of this.#rankings) ranking?.drop(node)
  }

  /** Returns true if anything changed. */
  #derive({ gpu, number }: PoolMember): boolean {
    let isChanged = this.#reservations[number] !== gpu.reservations
    if (isChanged) {
      this.#reservations[number] = gpu.reservations
      this.hasReservations[number] = gpu.reservations.length > 0 ? 1 : 0
    }
    const { strategy } = this.#policy
    const key1 = key1Of(gpu, this.when, strategy)
    const key2 = key2Of(gpu, strategy)
    const isRoomChanged = this.key2[number] !== key2
    if (this.key1[number] !== key1 || isRoomChanged) {
      this.key1[number] = key1
      this.key2[number] = key2
      isChanged = true
    }
    this.#deriveAdmitted(gpu)
    const from = number * this.columns
    for (let column = 0; column < this.columns; column++) {
      const mib = this.#derived[column] as Mib
      const before = this.admitsMib[from + column] as Mib
      if (mib === before) {
        // What reservations leave to a noswap task also depends on commit room, the second key
        // (`leftByReservationsMib`).
        const isOfferChanged =
          isRoomChanged && this.hasReservations[number] === 1 && kindOfColumn(this.when, column) === 'noswap'
        if (isOfferChanged) (this.capacityGains[column] as CapacityGainLog).add(mib)
        continue
      }
      if (mib > before) (this.capacityGains[column] as CapacityGainLog).add(mib)
      this.admitsMib[from + column] = mib
      isChanged = true
    }
    return isChanged
  }

  #deriveAdmitted(gpu: LiveGpu): void {
    const { maxTasksPerGpu } = this.#policy
    const derived = this.#derived
    if (this.when === 'now') {
      for (let column = 0; column < derived.length; column++)
        derived[column] = largestNowMib(gpu, KINDS_NOW[column] as RequestKind, maxTasksPerGpu)
      return
    }
    for (let place = 0; place < KINDS_AFTER.length; place++) {
      const kind = KINDS_AFTER[place] as RequestKind
      const nowMib = largestNowMib(gpu, kind, maxTasksPerGpu)
      derived[2 * place] = Math.max(nowMib, largestAfterSwapMib(gpu, kind, false, maxTasksPerGpu))
      derived[2 * place + 1] = Math.max(nowMib, largestAfterSwapMib(gpu, kind, true, maxTasksPerGpu))
    }
  }

  #grow(number: number): void {
    const room = Math.max(2 * this.#isStale.length, number + 1)
    this.#isStale = grownFlags(this.#isStale, room)
    this.hasReservations = grownFlags(this.hasReservations, room)
    this.key1 = grownColumn(this.key1, room, 0)
    this.key2 = grownColumn(this.key2, room, 0)
    this.admitsMib = grownColumn(this.admitsMib, room * this.columns, NOTHING)
  }
}
