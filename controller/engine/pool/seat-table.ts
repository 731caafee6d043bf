/**
 * What a pool compares of its GPUs, for what fits now or for what fits after a swap: the keys of their order
 * and the largest demand that they admit, in columns by the numbers of their seats. A GPU that changed is
 * only marked; its figures are derived when somebody asks.
 */
import type { Mib } from '../../../protocol/units.ts'
import type { Policy } from '../../domain/config.ts'
import { grownColumn, grownFlags } from '../../domain/columns.ts'
import { empty } from '../../domain/list-edit.ts'
import type { Hold } from '../../domain/node.ts'
import { largestAfterSwapMib, largestNowMib, NOTHING } from '../../scheduler/feasible.ts'
import type { When } from '../../scheduler/score.ts'
import { key1Of, key2Of } from '../../scheduler/score.ts'
import type { RequestKind } from '../../scheduler/shape.ts'
import { Facet } from './facet.ts'
import type { LiveGpu } from '../live.ts'
import { kindOfLane, KINDS_AFTER, KINDS_NOW } from './lanes.ts'
import { RaiseLog } from './raise-log.ts'
import type { NodeSeat, Seat } from './seats.ts'

const FIRST_ROOM = 64

export class SeatTable {
  readonly when: When
  readonly lanes: number
  key1 = new Float64Array(FIRST_ROOM)
  key2 = new Float64Array(FIRST_ROOM)
  /** By seat and lane: the largest demand it admits, its holds left aside. */
  admitsMib: Float64Array
  /** By seat: it has holds. */
  isHeld = new Uint8Array(FIRST_ROOM)
  /** By lane: what GPUs that admit more than before admit. */
  readonly raises: readonly RaiseLog[]
  readonly #policy: Policy
  /** The holds that its figures were derived with: a new list whenever they change. */
  readonly #holds: (readonly Hold[] | undefined)[] = []
  readonly #stale: Seat[] = []
  #isStale = new Uint8Array(FIRST_ROOM)
  readonly #derived: Float64Array
  /** By the number of GPUs that are asked for. */
  readonly #facets: (Facet | undefined)[] = []

  constructor(when: When, policy: Policy, nodes: Iterable<NodeSeat>) {
    this.when = when
    this.#policy = policy
    this.lanes = when === 'now' ? KINDS_NOW.length : 2 * KINDS_AFTER.length
    this.admitsMib = new Float64Array(FIRST_ROOM * this.lanes).fill(NOTHING)
    this.raises = Array.from({ length: this.lanes }, () => new RaiseLog())
    this.#derived = new Float64Array(this.lanes)
    for (const { unit } of nodes) for (const seat of unit.seats) this.mark(seat)
  }

  /** The GPU's books, its node or its holds changed. */
  mark(seat: Seat): void {
    const { number } = seat
    if (number >= this.#isStale.length) this.#grow(number)
    if (this.#isStale[number] === 1) return
    this.#isStale[number] = 1
    this.#stale.push(seat)
  }

  /** Derives what was marked. */
  catchUp(): void {
    if (this.#stale.length === 0) return
    for (let at = 0; at < this.#stale.length; at++) {
      const seat = this.#stale[at] as Seat
      this.#isStale[seat.number] = 0
      if (!seat.node.isMember || !this.#derive(seat)) continue
      for (const facet of this.#facets) if (facet !== undefined) facet.mark(seat)
    }
    empty(this.#stale)
  }

  /** @param nodes all of the pool */
  facetFor(gpuCount: number, nodes: Iterable<NodeSeat>): Facet {
    this.catchUp()
    let facet = this.#facets[gpuCount]
    if (facet === undefined) {
      facet = new Facet(this, gpuCount)
      this.#facets[gpuCount] = facet
      for (const { unit } of nodes) for (const seat of unit.seats) facet.mark(seat)
    }
    facet.catchUp()
    return facet
  }

  /** The node is no longer of this pool. */
  drop(node: NodeSeat): void {
    for (const facet of this.#facets) facet?.drop(node)
  }

  /** Says whether anything changed. */
  #derive({ gpu, number }: Seat): boolean {
    let isChanged = this.#holds[number] !== gpu.holds
    if (isChanged) {
      this.#holds[number] = gpu.holds
      this.isHeld[number] = gpu.holds.length > 0 ? 1 : 0
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
    const from = number * this.lanes
    for (let lane = 0; lane < this.lanes; lane++) {
      const mib = this.#derived[lane] as Mib
      const before = this.admitsMib[from + lane] as Mib
      if (mib === before) {
        // What holds leave to a noswap task also depends on commit room, the second key
        // (`leftBesideHoldsMib`).
        const isOfferChanged =
          isRoomChanged && this.isHeld[number] === 1 && kindOfLane(this.when, lane) === 'noswap'
        if (isOfferChanged) (this.raises[lane] as RaiseLog).add(mib)
        continue
      }
      if (mib > before) (this.raises[lane] as RaiseLog).add(mib)
      this.admitsMib[from + lane] = mib
      isChanged = true
    }
    return isChanged
  }

  #deriveAdmitted(gpu: LiveGpu): void {
    const { maxTasksPerGpu } = this.#policy
    const derived = this.#derived
    if (this.when === 'now') {
      for (let lane = 0; lane < derived.length; lane++)
        derived[lane] = largestNowMib(gpu, KINDS_NOW[lane] as RequestKind, maxTasksPerGpu)
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
    this.isHeld = grownFlags(this.isHeld, room)
    this.key1 = grownColumn(this.key1, room, 0)
    this.key2 = grownColumn(this.key2, room, 0)
    this.admitsMib = grownColumn(this.admitsMib, room * this.lanes, NOTHING)
  }
}
