/** Open tasks in the order of their submission, to be walked through from the newest. */
import { isFinal } from '../../domain/task.ts'
import type { LiveTask } from '../live.ts'

/** Ended tasks are let go of once they are more than the open ones, and more than this. */
const COMPACT_FROM_TASKS = 1_024

export class SubmissionLog {
  /** By number, ascending; those that have ended since are passed over. */
  #tasks: LiveTask[] = []

  /** @param openCount how many tasks are open, this one included; it has the highest number so far */
  add(task: LiveTask, openCount: number): void {
    this.#tasks.push(task)
    if (this.#tasks.length < COMPACT_FROM_TASKS || this.#tasks.length < 2 * openCount) return
    this.#tasks = this.#tasks.filter((each) => !isFinal(each.state))
  }

  /**
   * Those with a smaller number than this. What is submitted or ends during the walk may or may not be in it.
   */
  *newestFirst(beforeSeq: number): Generator<LiveTask> {
    const tasks = this.#tasks
    for (let at = positionOf(tasks, beforeSeq) - 1; at >= 0; at--) {
      const task = tasks[at] as LiveTask
      if (!isFinal(task.state)) yield task
    }
  }
}

/** Of the first with at least this number. */
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
