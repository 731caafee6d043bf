/**
 * How long tasks are present, from ended and running tasks: the product-limit estimate (Kaplan, Meier,
 * Nonparametric estimation from incomplete observations, JASA 53, 1958), so that long running tasks are
 * included. Beyond the longest observed end the tail is exponential, with the mean of all observations: an
 * assumption of Headroom.
 */
import type { RandomStream } from '../../controller/ports/random.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { log } from '../kernel/exact-math.ts'

/** A task was observed for this time, to its end or not. */
export interface Seen {
  readonly ms: DurationMs
  readonly hasEnded: boolean
}

export class Residence {
  /** Steps of the estimate: increasing times, and the share that is present for longer. */
  readonly #atMs: readonly number[]
  readonly #stays: readonly number[]
  /** Total observed time, divided by the number of ends: an exponential estimate. */
  readonly meanMs: number
  readonly ends: number

  constructor(seen: readonly Seen[]) {
    const sorted = [...seen].sort((a, b) => a.ms - b.ms || Number(b.hasEnded) - Number(a.hasEnded))
    const [at, stays]: [number[], number[]] = [[], []]
    let share = 1
    let total = 0
    let ends = 0
    for (const [index, { ms, hasEnded }] of sorted.entries()) {
      total += ms
      if (!hasEnded) continue
      ends += 1
      const left = sorted.length - index
      share *= (left - 1) / left
      at.push(ms)
      stays.push(share)
    }
    this.#atMs = at
    this.#stays = stays
    this.meanMs = Math.max(1, total / Math.max(1, ends))
    this.ends = ends
  }

  /** Remaining time of a task that has been present for `ageMs`: 1 ms or more. */
  drawLeft(ageMs: DurationMs, random: RandomStream): DurationMs {
    return this.#leftAt(random(), ageMs, random)
  }

  /** Median remaining time. */
  medianLeft(ageMs: DurationMs): DurationMs {
    return this.#leftAt(0.5, ageMs, () => 0.5)
  }

  /** @param u share of the tasks present for `ageMs` that are present for longer than the result */
  #leftAt(u: number, ageMs: DurationMs, random: RandomStream): DurationMs {
    const first = firstAbove(this.#atMs, ageMs)
    const stillThere = first === 0 ? 1 : (this.#stays[first - 1] as number)
    const wanted = u * stillThere
    let low = first
    let high = this.#stays.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#stays[middle] as number) <= wanted) high = middle
      else low = middle + 1
    }
    const at = this.#atMs[low]
    if (at !== undefined && stillThere > 0) return Math.max(1, Math.round(at - ageMs))
    const longest = this.#atMs.at(-1) ?? 0
    return Math.max(1, Math.round(Math.max(longest, ageMs) - ageMs - this.meanMs * log(1 - random())))
  }
}

function firstAbove(sorted: readonly number[], value: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((sorted[middle] as number) > value) high = middle
    else low = middle + 1
  }
  return low
}
