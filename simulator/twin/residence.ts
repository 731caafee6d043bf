/**
 * How long tasks stay, from those that have ended and those that have not: the product-limit estimate
 * (Kaplan, Meier, Nonparametric estimation from incomplete observations, JASA 53, 1958), so that long tasks
 * that still run are not left out. Beyond the longest that was seen to end the tail is exponential, with the
 * mean of what was seen: an assumption of our own.
 */
import type { RandomStream } from '../../controller/ports/random.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { log } from '../kernel/exact-math.ts'

/** A task was seen for so long, to its end or not. */
export interface Seen {
  readonly ms: DurationMs
  readonly hasEnded: boolean
}

export class Residence {
  /** Where it falls: rising times, and the share that stays longer. */
  readonly #atMs: readonly number[]
  readonly #stays: readonly number[]
  /** Of all that was seen, ended or not, over the ends: an exponential estimate. */
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

  /** What is left of one that has stayed for `ageMs`: 1 ms or more. */
  drawLeft(ageMs: DurationMs, random: RandomStream): DurationMs {
    return this.#leftAt(random(), ageMs, random)
  }

  /** Half of those that have stayed so long stay so much longer. */
  medianLeft(ageMs: DurationMs): DurationMs {
    return this.#leftAt(0.5, ageMs, () => 0.5)
  }

  /** @param u of those that have stayed for `ageMs`, the share that stays longer than the answer */
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
