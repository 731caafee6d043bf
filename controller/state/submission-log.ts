/** Open tasks in submission order, iterated from the newest. */
import { isFinal } from '../model/task.ts'
import type { LiveTask } from './facts.ts'

/** Ended tasks are dropped once they outnumber the open ones and exceed this number. */
const COMPACT_FROM_TASKS = 1_024

export class SubmissionLog {
  /** Ascending by number; ended tasks are skipped. */
  #tasks: LiveTask[] = []

  /** @param openCount number of open tasks including this one, which has the highest number so far */
  add(task: LiveTask, openCount: number): void {
    this.#tasks.push(task)
    if (this.#tasks.length < COMPACT_FROM_TASKS || this.#tasks.length < 2 * openCount) return
    this.#tasks = this.#tasks.filter((each) => !isFinal(each.state))
  }

  /**
   * Yields tasks with a smaller number. Tasks submitted or ended during the iteration may or may not be
   * included.
   */
  *newestFirst(beforeSeq: number): Generator<LiveTask> {
    const tasks = this.#tasks
    for (let at = positionOf(tasks, beforeSeq) - 1; at >= 0; at--) {
      const task = tasks[at] as LiveTask
      if (!isFinal(task.state)) yield task
    }
  }
}

/** Returns the index of the first task with at least this number. */
function positionOf(tasks: readonly LiveTask[], seq: number): number {
  let low = 0
  let high = tasks.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((tasks[middle] as LiveTask).spec.seq < seq) low = middle + 1
    else high = middle
  }
  return low
}
