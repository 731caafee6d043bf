/** The attempts that live on this server, at most one per task. */
import type { Instant } from '../../protocol/units.ts'
import type { TaskReport } from '../../protocol/messages.ts'
import type { Attempt } from './attempt.ts'
import { reportOf } from './attempt.ts'

export class TaskTable {
  readonly #byTask = new Map<string, Attempt>()

  get byTask(): ReadonlyMap<string, Readonly<Attempt>> {
    return this.#byTask
  }

  get size(): number {
    return this.#byTask.size
  }

  /** Returns the living attempt of this task, or null. */
  ofTask(taskId: string): Attempt | null {
    return this.#byTask.get(taskId) ?? null
  }

  find(taskId: string, attempt: number): Attempt | null {
    const living = this.#byTask.get(taskId)
    return living?.attempt === attempt ? living : null
  }

  add(attempt: Attempt): void {
    const size = this.#byTask.size
    this.#byTask.set(attempt.taskId, attempt)
    if (this.#byTask.size === size)
      throw new Error(`broken invariant: task ${attempt.taskId} would live here twice`)
    attempt.isHere = true
  }

  remove(attempt: Attempt): void {
    if (!this.#byTask.delete(attempt.taskId))
      throw new Error(`broken invariant: task ${attempt.taskId} would end twice`)
    attempt.isHere = false
  }

  all(): IterableIterator<Attempt> {
    return this.#byTask.values()
  }

  reports(now: Instant): TaskReport[] {
    const reports: TaskReport[] = []
    for (const attempt of this.#byTask.values()) reports.push(reportOf(attempt, now))
    return reports
  }

  /** The server has stopped: late callbacks of the device find no attempt. */
  clear(): void {
    for (const attempt of this.#byTask.values()) attempt.isHere = false
    this.#byTask.clear()
  }
}
