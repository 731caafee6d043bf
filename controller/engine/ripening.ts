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
    if (at === null || isRipe) return
    const before = placement.ripensAt
    // One that ripens later than its place says goes back when its time comes; one that ripens earlier moves up now.
    if (before !== null && before <= at) return
    placement.ripensAt = at
    if (before === null) this.#heap.push(placement)
    this.#moveUp(placement, before === null ? this.#heap.length - 1 : placement.ripeningPosition)
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

  #moveUp(placement: LivePlacement, from: number): void {
    let at = from
    while (at > 0) {
      const parent = (at - 1) >>> 1
      const other = this.#heap[parent] as LivePlacement
      if (!ripensBefore(placement, other)) break
      this.#put(other, at)
      at = parent
    }
    this.#put(placement, at)
  }

  #put(placement: LivePlacement, at: number): void {
    this.#heap[at] = placement
    placement.ripeningPosition = at
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
      this.#put(heap[child] as LivePlacement, at)
      at = child
    }
    this.#put(last, at)
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
    if (isRipe) cluster.touchGpu(gpu)
    else cluster.lessenGpu(gpu)
  }
}
