/** When placements become eligible victims: a heap of instants, at most one per placement, so that idle tasks cost nothing while they idle. */
import type { Instant } from '../../protocol/units.ts'
import { ripeAt } from '../swap/eligible.ts'
import type { Cluster } from './cluster.ts'
import type { LivePlacement } from './live.ts'

export class RipeningHeap {
  #heap: LivePlacement[] = []

  /** The earliest instant at which somebody may ripen; null when nobody waits to. */
  nextAt(): Instant | null {
    return this.#heap[0]?.ripensAt ?? null
  }

  /** Something about the placement changed (use, residency, back-off): its ripeness follows. Call after the change. */
  update(cluster: Cluster, placement: LivePlacement, now: Instant): void {
    const at = ripeAt(placement, cluster.policy)
    const isRipe = at !== null && at <= now
    if (isRipe !== placement.isRipe) setRipe(cluster, placement, isRipe)
    if (at === null || isRipe || placement.ripensAt !== null) return
    placement.ripensAt = at
    this.#push(placement)
  }

  /** Moves everybody whose time has come. An entry that is early (its task was busy meanwhile) goes back with its new instant. */
  ripen(cluster: Cluster, now: Instant): void {
    for (let head = this.#heap[0]; head !== undefined && (head.ripensAt as Instant) <= now; head = this.#heap[0]) {
      this.#pop()
      head.ripensAt = null
      if (head.task.placement === head) this.update(cluster, head, now)
    }
  }

  /** The idle period or max_residency changed. */
  rebuild(cluster: Cluster, now: Instant): void {
    for (const placement of this.#heap) placement.ripensAt = null
    this.#heap = []
    for (const task of cluster.tasks.values()) if (task.placement !== null) this.update(cluster, task.placement, now)
  }

  #push(placement: LivePlacement): void {
    const heap = this.#heap
    let at = heap.length
    heap.push(placement)
    while (at > 0) {
      const parent = (at - 1) >>> 1
      if (!ripensBefore(placement, heap[parent] as LivePlacement)) break
      heap[at] = heap[parent] as LivePlacement
      at = parent
    }
    heap[at] = placement
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop() as LivePlacement
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && ripensBefore(heap[child + 1] as LivePlacement, heap[child] as LivePlacement)) child += 1
      if (!ripensBefore(heap[child] as LivePlacement, last)) break
      heap[at] = heap[child] as LivePlacement
      at = child
    }
    heap[at] = last
  }
}

/** 1. Earlier instant. 2. Submission number. */
function ripensBefore(a: LivePlacement, b: LivePlacement): boolean {
  const difference = (a.ripensAt as Instant) - (b.ripensAt as Instant)
  return difference < 0 || (difference === 0 && a.submissionNumber < b.submissionNumber)
}

/** Takes the placement's bytes into, or out of, the eligible bytes of its GPUs. */
export function setRipe(cluster: Cluster, placement: LivePlacement, isRipe: boolean): void {
  placement.isRipe = isRipe
  const mib = isRipe ? placement.demandMib : -placement.demandMib
  for (const gpu of placement.gpus) {
    if (placement.task.spec.priority === 0) gpu.ripeP0Mib += mib
    else gpu.ripeMib += mib
    cluster.touchGpu(gpu)
  }
}
