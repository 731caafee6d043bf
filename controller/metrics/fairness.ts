/**
 * How evenly swap-outs are distributed over comparable tasks (semantics 7): Jain's index over x_i = swap-outs
 * of i / decisions at which i was eligible, per GPU and class. Source: R. Jain, D. Chiu, W. Hawe, "A
 * Quantitative Measure of Fairness", DEC-TR-301, 1984.
 */

/**
 * (Σx)² / (n Σx²): 1 if all are equal, 1/n if one task has all swap-outs; null for no tasks, 1 without
 * swap-outs.
 */
function jainIndex(count: number, sum: number, sumOfSquares: number): number | null {
  if (count === 0) return null
  return sumOfSquares === 0 ? 1 : (sum * sum) / (count * sumOfSquares)
}

interface Tally {
  eligible: number
  swapped: number
}

/**
 * One GPU and class. Tasks that have left are folded into sums, so that memory is bounded by the present
 * tasks.
 */
class ClassTracker {
  readonly #tallies = new Map<string, Tally>()
  #count = 0
  #sum = 0
  #sumOfSquares = 0

  wasEligible(taskId: string, isVictim: boolean): void {
    let tally = this.#tallies.get(taskId)
    if (tally === undefined) {
      tally = { eligible: 0, swapped: 0 }
      this.#tallies.set(taskId, tally)
    }
    tally.eligible += 1
    if (isVictim) tally.swapped += 1
  }

  leaves(taskId: string): void {
    const tally = this.#tallies.get(taskId)
    if (tally === undefined) return
    this.#tallies.delete(taskId)
    const x = tally.swapped / tally.eligible
    this.#count += 1
    this.#sum += x
    this.#sumOfSquares += x * x
  }

  read(): { count: number; index: number } {
    let count = this.#count
    let sum = this.#sum
    let sumOfSquares = this.#sumOfSquares
    for (const tally of this.#tallies.values()) {
      const x = tally.swapped / tally.eligible
      count += 1
      sum += x
      sumOfSquares += x * x
    }
    return { count, index: jainIndex(count, sum, sumOfSquares) ?? 1 }
  }
}

/** All GPUs and classes; `scope` is the caller's name for one of them. */
export class FairnessTracker {
  readonly #books = new Map<string, ClassTracker>()

  /**
   * Records a decision on this GPU and class: the eligible tasks, and those chosen for this GPU's shortage.
   */
  decided(scope: string, eligibleIds: readonly string[], victimIds: ReadonlySet<string>): void {
    let book = this.#books.get(scope)
    if (book === undefined) {
      book = new ClassTracker()
      this.#books.set(scope, book)
    }
    for (const id of eligibleIds) book.wasEligible(id, victimIds.has(id))
  }

  leaves(scope: string, taskId: string): void {
    this.#books.get(scope)?.leaves(taskId)
  }

  /** The mean over all scopes, weighted by tasks; null if there was no decision. */
  jain(): number | null {
    let tasks = 0
    let weighted = 0
    for (const book of this.#books.values()) {
      const { count, index } = book.read()
      tasks += count
      weighted += count * index
    }
    return tasks === 0 ? null : weighted / tasks
  }
}
