/**
 * When placements become eligible victims: a heap of instants, at most one current per placement, so that
 * idle tasks cost nothing.
 */
import { movableMib } from '../../model/placement.ts'
import type { Instant } from '../../../protocol/units.ts'
import { eligibleFrom } from '../../policy/swap/eligible.ts'
import type { Policy } from '../../model/config.ts'
import { removeAt } from '../../structures/list-edit.ts'
import type { LiveGpu, LivePlacement, LiveTask } from '../facts.ts'

/** Receives changes of eligibility. */
interface EligibleBytes {
  readonly policy: Policy
  eligibleBytesChanged(gpu: LiveGpu, isMore: boolean): void
}

export class EligibilityTimers {
  /** In heap order: instants, submission numbers and placements. Compared values are adjacent in memory. */
  readonly #ats: Instant[] = []
  readonly #numbers: number[] = []
  readonly #placements: LivePlacement[] = []
  /** Number of entries replaced by an earlier one. */
  #outdated = 0

  /** Returns the earliest instant at which a placement may become eligible; null if none is waiting. */
  nextAt(): Instant | null {
    while (this.#ats.length > 0 && !this.#isCurrent(0)) this.#dropFirst()
    return this.#ats[0] ?? null
  }

  /** Call after use, residency or back-off of the placement changed: updates its eligibility. */
  update(cluster: EligibleBytes, placement: LivePlacement, now: Instant): void {
    const at = eligibleFrom(placement, cluster.policy)
    const isEligible = at !== null && at <= now
    if (isEligible !== placement.isEligible) setEligible(cluster, placement, isEligible)
    if (at === null || isEligible) return
    // A later instant keeps its entry, which is moved when it is due; an earlier instant gets a new entry.
    if (placement.eligibilityTimerAt === null || at < placement.eligibilityTimerAt) this.#add(at, placement)
  }

  /**
   * Processes every entry that is due. An entry that is early (its task was busy meanwhile) is added again
   * with its new instant.
   */
  runDue(cluster: EligibleBytes, now: Instant): void {
    for (let at = this.#ats[0]; at !== undefined && at <= now; at = this.#ats[0]) {
      if (!this.#isCurrent(0)) {
        this.#dropFirst()
        continue
      }
      const first = this.#takeFirst()
      first.eligibilityTimerAt = null
      if (first.task.placement === first) this.update(cluster, first, now)
    }
  }

  /** In heap order. */
  entries(): readonly (readonly [at: Instant, placement: LivePlacement])[] {
    return this.#placements.flatMap((placement, place) =>
      this.#isCurrent(place) ? [[this.#ats[place] as Instant, placement] as const] : [],
    )
  }

  /** Restores captured entries. The heap must be empty. */
  restore(entries: readonly (readonly [at: Instant, placement: LivePlacement])[]): void {
    for (const [at, placement] of entries) this.#add(at, placement)
  }

  /** The idle period or max_residency changed. */
  rebuild(cluster: EligibleBytes & { readonly tasks: ReadonlyMap<string, LiveTask> }, now: Instant): void {
    for (const placement of this.#placements) placement.eligibilityTimerAt = null
    this.#ats.length = 0
    this.#numbers.length = 0
    this.#placements.length = 0
    this.#outdated = 0
    for (const task of cluster.tasks.values())
      if (task.placement !== null) this.update(cluster, task.placement, now)
  }

  /** No earlier entry has replaced it. */
  #isCurrent(place: number): boolean {
    return (
      this.#outdated === 0 ||
      (this.#placements[place] as LivePlacement).eligibilityTimerAt === this.#ats[place]
    )
  }

  #dropFirst(): void {
    this.#takeFirst()
    this.#outdated -= 1
  }

  #add(at: Instant, placement: LivePlacement): void {
    if (placement.eligibilityTimerAt !== null) this.#outdated += 1
    placement.eligibilityTimerAt = at
    const number = placement.submissionNumber
    let place = this.#ats.length
    this.#put(place, at, number, placement)
    while (place > 0) {
      const parent = (place - 1) >>> 1
      if (!this.#isBefore(at, number, parent)) break
      this.#put(
        place,
        this.#ats[parent] as Instant,
        this.#numbers[parent] as number,
        this.#placements[parent] as LivePlacement,
      )
      place = parent
    }
    this.#put(place, at, number, placement)
  }

  #put(place: number, at: Instant, number: number, placement: LivePlacement): void {
    this.#ats[place] = at
    this.#numbers[place] = number
    this.#placements[place] = placement
  }

  #takeFirst(): LivePlacement {
    const first = this.#placements[0] as LivePlacement
    const at = this.#ats.pop() as Instant
    const number = this.#numbers.pop() as number
    const last = this.#placements.pop() as LivePlacement
    const size = this.#ats.length
    if (size === 0) return first
    let place = 0
    for (;;) {
      let child = 2 * place + 1
      if (child >= size) break
      if (
        child + 1 < size &&
        this.#isBefore(this.#ats[child + 1] as Instant, this.#numbers[child + 1] as number, child)
      )
        child += 1
      if (this.#isBefore(at, number, child)) break
      this.#put(
        place,
        this.#ats[child] as Instant,
        this.#numbers[child] as number,
        this.#placements[child] as LivePlacement,
      )
      place = child
    }
    this.#put(place, at, number, last)
    return first
  }

  /** 1. Earlier instant. 2. Submission number. */
  #isBefore(at: Instant, number: number, other: number): boolean {
    const otherAt = this.#ats[other] as Instant
    return at === otherAt ? number < (this.#numbers[other] as number) : at < otherAt
  }
}

/** Adds the placement to the eligible ones of its GPUs, or removes it, and counts its VRAM there. */
export function setEligible(cluster: EligibleBytes, placement: LivePlacement, isEligible: boolean): void {
  placement.isEligible = isEligible
  const mib = isEligible ? movableMib(placement) : -movableMib(placement)
  for (const gpu of placement.gpus) {
    if (placement.task.spec.priority === 0) gpu.eligibleP0Mib += mib
    else gpu.eligibleMib += mib
    if (isEligible) gpu.eligible.push(placement)
    else removeAt(gpu.eligible, gpu.eligible.indexOf(placement))
    cluster.eligibleBytesChanged(gpu, isEligible)
  }
}
