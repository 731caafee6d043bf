/** The pending tasks of one shape, in queue order, searchable by demand. */
import type { Mib } from '../../../protocol/units.ts'
import { byCodeUnits } from '../../structures/order.ts'
import { newIndexEntry, OrderedIndex } from '../../structures/ordered-index.ts'
import type { Queued } from '../../policy/placement/queue.ts'
import type { ShapeQueue } from '../../policy/placement/schedule.ts'
import type { Shape } from '../../policy/placement/shape.ts'
import { searchDemandMib } from '../../policy/placement/shape.ts'
import type { LiveTask, TaskQueue } from '../facts.ts'
import type { Pool, PoolVersion } from './pool.ts'

export class PendingQueue implements ShapeQueue, TaskQueue {
  readonly shape: Shape
  readonly pool: Pool
  /** The owner whose limit applies to all its tasks; null: none. */
  readonly owner: string | null
  readonly #index = new OrderedIndex<LiveTask>((a, b) => byCodeUnits(a.spec.id, b.spec.id))
  readonly #aside = new Set<LiveTask>()
  readonly #room: (() => number) | null
  /** Version of the pool at which nothing in the queue fitted; null: unknown. */
  #blockedAt: PoolVersion | null = null

  /** @param room returns the GPUs that the owner of its tasks may still use; null: no limit */
  constructor(shape: Shape, pool: Pool, owner: string | null = null, room: (() => number) | null = null) {
    this.shape = shape
    this.pool = pool
    this.owner = owner
    this.#room = room
  }

  /** Its owner has no room for any of its tasks: none is a head, and none is placed (OWNER_LIMIT). */
  get isLimited(): boolean {
    return this.#room !== null && this.#room() < this.shape.gpuCount
  }

  get size(): number {
    return this.#index.size
  }

  add(task: LiveTask): void {
    task.queue = this
    task.queueEntry ??= newIndexEntry(task)
    this.#index.set(task.queueEntry, task.queueClass, task.spec.seq, -searchDemandMib(task.spec))
    this.#blockedAt = null
  }

  remove(task: LiveTask): void {
    if (task.queueEntry !== null) this.#index.remove(task.queueEntry)
    task.queue = null
    task.queueEntry = null
    this.#aside.delete(task)
  }

  firstWithin(demandMib: Mib): Queued | null {
    if (demandMib <= 0) return null
    let entry = this.#index.firstAtLeast(-demandMib)
    while (entry !== null && this.#aside.has(entry.item)) entry = this.#index.nextAtLeast(entry, -demandMib)
    return entry === null ? null : { task: entry.item, queueClass: entry.key1 }
  }

  nextWithin(previous: Queued, demandMib: Mib): Queued | null {
    let entry = (previous.task as LiveTask).queueEntry
    if (demandMib <= 0 || entry === null) return null
    do entry = this.#index.nextAtLeast(entry, -demandMib)
    while (entry !== null && this.#aside.has(entry.item))
    return entry === null ? null : { task: entry.item, queueClass: entry.key1 }
  }

  headWithin(demandMib: Mib): Queued | null {
    const entry = demandMib > 0 && !this.isLimited ? this.#index.firstAtLeast(-demandMib) : null
    return entry === null ? null : { task: entry.item, queueClass: entry.key1 }
  }

  /** Returns the first task of each class with at most this demand, in queue order. */
  classHeads(demandMib: Mib): Queued[] {
    const heads: Queued[] = []
    if (demandMib <= 0 || this.isLimited) return heads
    for (
      let entry = this.#index.firstFrom(0, -demandMib);
      entry !== null;
      entry = this.#index.firstFrom(entry.key1 + 1, -demandMib)
    ) {
      heads.push({ task: entry.item, queueClass: entry.key1 })
    }
    return heads
  }

  /** Number of tasks with at most this demand that come before the task, which may be in another queue. */
  countBefore({ task, queueClass }: Queued, demandMib: Mib): number {
    return demandMib > 0 && !this.isLimited
      ? this.#index.countBelow(queueClass, task.spec.seq, -demandMib)
      : 0
  }

  /** Number of tasks with at most this demand. */
  countWithin(demandMib: Mib): number {
    return demandMib > 0 ? this.#index.countBelow(Infinity, Infinity, -demandMib) : 0
  }

  isBlocked(): boolean {
    if (this.size === 0 || this.isLimited) return true
    return (
      this.#blockedAt !== null && !this.pool.mayFitSince(this.shape, this.#blockedAt, -this.#index.maxValue())
    )
  }

  markBlocked(): void {
    this.#blockedAt = this.pool.versionFor(this.shape)
  }

  setAside(task: LiveTask): void {
    this.#aside.add(task)
  }

  isSetAside(task: LiveTask): boolean {
    return this.#aside.has(task)
  }

  get hasAside(): boolean {
    return this.#aside.size > 0
  }

  /** Tasks that were set aside may be tried again in a new cycle. */
  clearAside(): void {
    if (this.#aside.size === 0) return
    this.#aside.clear()
    this.#blockedAt = null
  }

  /** All its tasks, in queue order. */
  *tasks(): Generator<LiveTask> {
    for (const entry of this.#index.entries()) yield entry.item
  }
}
