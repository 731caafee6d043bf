import { firstDifference } from '../../structures/order.ts'
import { byLargestFirst } from './order.ts'
import type { Candidate } from './order.ts'
import type { DurationMs, Mib } from '../../../protocol/units.ts'

/**
 * Up to this number of tasks the subset is optimal; beyond, it moves at most twice the minimum
 * (design/semantics.md 5, choice 3).
 */
export const EXACT_SUBSET_TASKS = 12

/**
 * The tasks that together free at least `missingMib` (more than 0) and move the least VRAM. Ties are broken
 * by
 * 1. fewer tasks,
 * 2. larger sum of idle time,
 * 3. smallest ids: the sorted lists of ids compared by code units. The order of the input has no influence;
 *    the input is not changed. Throws if all tasks together do not cover.
 */
export function fewestBytesCovering(tasks: readonly Candidate[], missingMib: Mib): readonly Candidate[] {
  const totalMib = totalOf(tasks)
  if (totalMib < missingMib)
    throw new Error(`broken invariant: a subset of ${totalMib} MiB shall cover ${missingMib} MiB`)
  if (tasks.length === 1 || totalMib === missingMib) return tasks
  const largestFirst = [...tasks].sort(byLargestFirst)
  return tasks.length <= EXACT_SUBSET_TASKS
    ? new ExactSearch(largestFirst, totalMib, missingMib).run()
    : coverWithinTwice(largestFirst, missingMib)
}

export function totalOf(tasks: readonly Candidate[]): Mib {
  let totalMib = 0
  for (const task of tasks) totalMib += task.mib
  return totalMib
}

/**
 * Branch and bound over the tasks, largest first, each taken or skipped; a bit of `mask` is a task taken. It
 * prunes
 * - branches that can no longer cover, or whose next cheapest step costs more than the best known;
 * - a task of the same size as one just skipped: the skipped one comes first by idle time and id, so taking
 *   it instead is never worse.
 */
class ExactSearch {
  readonly #tasks: readonly Candidate[]
  readonly #totalMib: Mib
  readonly #missingMib: Mib
  readonly #smallestMib: Mib
  #bestMib: Mib = Infinity
  #bestCount = 0
  #bestIdleMs: DurationMs = 0
  #bestMask = 0

  constructor(largestFirst: readonly Candidate[], totalMib: Mib, missingMib: Mib) {
    this.#tasks = largestFirst
    this.#totalMib = totalMib
    this.#missingMib = missingMib
    this.#smallestMib = largestFirst.at(-1)?.mib ?? 0
  }

  run(): Candidate[] {
    this.#visit(0, this.#totalMib, 0, 0, 0, 0, 0)
    return this.#tasks.filter((_, index) => (this.#bestMask & (1 << index)) !== 0)
  }

  /**
   * `restMib` is the VRAM of the tasks from `index` on, `skippedMib` the size of the previous task if it was
   * skipped.
   */
  #visit(
    index: number,
    restMib: Mib,
    takenMib: Mib,
    count: number,
    idleMs: DurationMs,
    mask: number,
    skippedMib: Mib,
  ): void {
    if (takenMib >= this.#missingMib) {
      if (this.#isBetter(takenMib, count, idleMs, mask)) this.#keep(takenMib, count, idleMs, mask)
      return
    }
    const task = this.#tasks[index]
    if (
      task === undefined ||
      takenMib + restMib < this.#missingMib ||
      this.#isTooDear(takenMib, count, task.mib)
    )
      return
    const restAfterMib = restMib - task.mib
    if (task.mib !== skippedMib) {
      this.#visit(
        index + 1,
        restAfterMib,
        takenMib + task.mib,
        count + 1,
        idleMs + task.idleMs,
        mask | (1 << index),
        0,
      )
    }
    this.#visit(index + 1, restAfterMib, takenMib, count, idleMs, mask, task.mib)
  }

  /**
   * No remaining task is larger than `largestMib`, so this branch ends with at least this VRAM and this
   * number of tasks.
   */
  #isTooDear(takenMib: Mib, count: number, largestMib: Mib): boolean {
    const leastMib = Math.max(this.#missingMib, takenMib + this.#smallestMib)
    if (leastMib !== this.#bestMib) return leastMib > this.#bestMib
    return takenMib + (this.#bestCount - count) * largestMib < this.#missingMib
  }

  #isBetter(mib: Mib, count: number, idleMs: DurationMs, mask: number): boolean {
    if (mib !== this.#bestMib) return mib < this.#bestMib
    if (count !== this.#bestCount) return count < this.#bestCount
    if (idleMs !== this.#bestIdleMs) return idleMs > this.#bestIdleMs
    return hasSmallerIds(this.#tasks, mask, this.#bestMask)
  }

  #keep(mib: Mib, count: number, idleMs: DurationMs, mask: number): void {
    this.#bestMib = mib
    this.#bestCount = count
    this.#bestIdleMs = idleMs
    this.#bestMask = mask
  }
}

/**
 * Compares two sorted lists of ids: the smaller list contains the smallest id that is in only one of them.
 */
function hasSmallerIds(tasks: readonly Candidate[], mask: number, otherMask: number): boolean {
  let smallestId: string | null = null
  let isOurs = false
  for (const [index, task] of tasks.entries()) {
    const bit = 1 << index
    if (((mask ^ otherMask) & bit) === 0 || (smallestId !== null && smallestId < task.id)) continue
    smallestId = task.id
    isOurs = (mask & bit) !== 0
  }
  return isOurs
}

/**
 * One pass, largest first: a task smaller than the remaining shortage is taken; any other would complete the
 * cover, and the best of these covers wins.
 *
 * At most twice the minimum: the minimum is at least `missingMib`. If some completing task is smaller than
 * `missingMib`, its cover is below `missingMib` + `missingMib`. Otherwise all smaller tasks were taken and do
 * not cover, so every cover contains a task of at least `missingMib`, and the smallest of these, alone, is
 * the minimum. Nothing in a cover is superfluous: its excess is less than its last, smallest task.
 */
function coverWithinTwice(largestFirst: readonly Candidate[], missingMib: Mib): Candidate[] {
  const taken: Candidate[] = []
  let takenMib = 0
  let takenIdleMs = 0
  let best: Cover | null = null
  for (const task of largestFirst) {
    const mib = takenMib + task.mib
    const idleMs = takenIdleMs + task.idleMs
    if (mib < missingMib) {
      taken.push(task)
      takenMib = mib
      takenIdleMs = idleMs
    } else if (best === null || mib <= best.mib) {
      const cover = { mib, count: taken.length + 1, idleMs, last: task }
      if (best === null || byFewestBytes(cover, best) < 0) best = cover
    }
  }
  if (best === null) throw new Error(`broken invariant: ${takenMib} MiB shall cover ${missingMib} MiB`)
  return [...taken.slice(0, best.count - 1), best.last]
}

/** The first `count` - 1 tasks taken, and `last`. */
interface Cover {
  readonly mib: Mib
  readonly count: number
  readonly idleMs: DurationMs
  readonly last: Candidate
}

/**
 * Least VRAM, then fewest tasks, then longest idle; of equal covers the first one found stays, which is the
 * same for any order of the input.
 */
const byFewestBytes = firstDifference<Cover>(
  (a, b) => a.mib - b.mib,
  (a, b) => a.count - b.count,
  (a, b) => b.idleMs - a.idleMs,
)
