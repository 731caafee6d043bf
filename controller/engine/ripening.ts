/** When placements become eligible victims: a heap of instants, at most one per placement, so that idle tasks cost nothing while they idle. */
import type { Instant } from '../../protocol/units.ts'
import { ripeAt } from '../swap/eligible.ts'
import type { Cluster } from './cluster.ts'
import type { LivePlacement } from './live.ts'

export class RipeningHeap {
  /** In heap order; each placement knows its place. */
  readonly #placements: LivePlacement[] = []
  /** The instants they are here for, in the same order: what is compared lies together. */
  readonly #ats: Instant[] = []

  /** The earliest instant at which somebody may ripen; null when nobody waits to. */
  nextAt(): Instant | null {
    return this.#ats[0] ?? null
  }

  /** Something about the placement changed (use, residency, back-off): its ripeness follows. Call after the change. */
  update(cluster: Cluster, placement: LivePlacement, now: Instant): void {
    const at = ripeAt(placement, cluster.policy)
    const isRipe = at !== null && at <= now
    if (isRipe !== placement.isRipe) setRipe(cluster, placement, isRipe)
    if (at === null || isRipe) return
    const place = placement.ripeningPosition
    // One that ripens later than its place says goes back when its time comes; one that ripens earlier moves up now.
    if (place === NOT_THERE) this.#moveUp(placement, at, this.#ats.push(at) - 1)
    else if (at < (this.#ats[place] as Instant)) this.#moveUp(placement, at, place)
  }

  /** Moves everybody whose time has come. An entry that is early (its task was busy meanwhile) goes back with its new instant. */
  ripen(cluster: Cluster, now: Instant): void {
    for (let at = this.#ats[0]; at !== undefined && at <= now; at = this.#ats[0]) {
      const first = this.#takeFirst()
      if (first.task.placement === first) this.update(cluster, first, now)
    }
  }

  /** In the order of the heap. */
  entries(): readonly (readonly [at: Instant, placement: LivePlacement])[] {
    return this.#placements.map((placement, place) => [this.#ats[place] as Instant, placement])
  }

  /** The same, into a heap that is empty. */
  recall(entries: readonly (readonly [at: Instant, placement: LivePlacement])[]): void {
    entries.forEach(([at, placement], place) => this.#put(placement, at, place))
  }

  /** The idle period or max_residency changed. */
  rebuild(cluster: Cluster, now: Instant): void {
    for (const placement of this.#placements) placement.ripeningPosition = NOT_THERE
    this.#placements.length = 0
    this.#ats.length = 0
    for (const task of cluster.tasks.values()) if (task.placement !== null) this.update(cluster, task.placement, now)
  }

  #moveUp(placement: LivePlacement, ripensAt: Instant, from: number): void {
    let place = from
    while (place > 0) {
      const parent = (place - 1) >>> 1
      if (!this.#isBefore(placement, ripensAt, parent)) break
      this.#put(this.#placements[parent] as LivePlacement, this.#ats[parent] as Instant, place)
      place = parent
    }
    this.#put(placement, ripensAt, place)
  }

  #put(placement: LivePlacement, ripensAt: Instant, place: number): void {
    this.#placements[place] = placement
    this.#ats[place] = ripensAt
    placement.ripeningPosition = place
  }

  #takeFirst(): LivePlacement {
    const first = this.#placements[0] as LivePlacement
    const last = this.#placements.pop() as LivePlacement
    const lastAt = this.#ats.pop() as Instant
    const size = this.#ats.length
    first.ripeningPosition = NOT_THERE
    if (size === 0) return first
    let place = 0
    for (;;) {
      let child = 2 * place + 1
      if (child >= size) break
      if (child + 1 < size && this.#isBefore(this.#placements[child + 1] as LivePlacement, this.#ats[child + 1] as Instant, child))
        child += 1
      if (this.#isBefore(last, lastAt, child)) break
      this.#put(this.#placements[child] as LivePlacement, this.#ats[child] as Instant, place)
      place = child
    }
    this.#put(last, lastAt, place)
    return first
  }

  /** 1. Earlier instant. 2. Submission number. */
  #isBefore(placement: LivePlacement, ripensAt: Instant, other: number): boolean {
    const otherAt = this.#ats[other] as Instant
    if (ripensAt !== otherAt) return ripensAt < otherAt
    return placement.submissionNumber < (this.#placements[other] as LivePlacement).submissionNumber
  }
}

/** The place of one that does not wait to ripen. */
const NOT_THERE = -1

/** Takes the placement's bytes into, or out of, the eligible bytes of its GPUs. */
export function setRipe(cluster: Cluster, placement: LivePlacement, isRipe: boolean): void {
  placement.isRipe = isRipe
  const mib = isRipe ? placement.demandMib : -placement.demandMib
  for (const gpu of placement.gpus) {
    if (placement.task.spec.priority === 0) gpu.ripeP0Mib += mib
    else gpu.ripeMib += mib
    cluster.ripenGpu(gpu, isRipe)
  }
}
