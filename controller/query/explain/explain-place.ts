/** The scheduler's decision for one task as if no other task waited. */
import type { Mib } from '../../../protocol/units.ts'
import type { Policy } from '../../model/config.ts'
import type { Queued } from '../../policy/placement/queue.ts'
import type { Plan, PoolView, ShapeQueue } from '../../policy/placement/schedule.ts'
import { nextPlacement } from '../../policy/placement/schedule.ts'
import type { Shape } from '../../policy/placement/shape.ts'
import { searchDemandMib } from '../../policy/placement/shape.ts'

/** Returns null if it fits nowhere now. The indexes of the pool must be up to date. */
export function placeAlone(queued: Queued, shape: Shape, pool: PoolView, policy: Policy): Plan | null {
  return nextPlacement({ queues: [new QueueOfOne(queued, shape, pool)], policy })
}

class QueueOfOne implements ShapeQueue {
  readonly shape: Shape
  readonly pool: PoolView
  readonly #queued: Queued
  #isAside = false

  constructor(queued: Queued, shape: Shape, pool: PoolView) {
    this.#queued = queued
    this.shape = shape
    this.pool = pool
  }

  firstWithin(demandMib: Mib): Queued | null {
    return this.#isAside || searchDemandMib(this.#queued.task.spec) > demandMib ? null : this.#queued
  }

  nextWithin(): Queued | null {
    return null
  }

  headWithin(demandMib: Mib): Queued | null {
    return searchDemandMib(this.#queued.task.spec) > demandMib ? null : this.#queued
  }

  isBlocked(): boolean {
    return this.#isAside
  }

  markBlocked(): void {
    this.#isAside = true
  }

  setAside(): void {
    this.#isAside = true
  }

  isSetAside(): boolean {
    return this.#isAside
  }
}
