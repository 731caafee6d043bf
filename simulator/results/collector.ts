/** Collects the figures of the result from the events of a run. Memory grows with the open tasks only. */
import { totalOf, WakeTimes } from '../../controller/metrics/wake-times.ts'
import type { Event } from '../../controller/model/event.ts'
import type { Task } from '../../controller/model/placement.ts'
import type { TaskRecord } from '../../controller/ports/store.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import { Samples } from './samples.ts'

export interface TaskOutcome {
  readonly id: string
  readonly submittedAt: Instant
  readonly startedAt: Instant | null
  readonly finishedAt: Instant
  readonly state: string
  readonly aloneMs: DurationMs | null
}

/** A task that has not ended. */
export type OpenOutcome = Omit<TaskOutcome, 'finishedAt' | 'state'>

interface OpenTask {
  readonly submittedAt: Instant
  startedAt: Instant | null
  /** Its duration alone on an idle GPU; null: unknown. */
  readonly aloneMs: DurationMs | null
}

export class Collector {
  readonly jctMs = new Samples()
  readonly queueWaitMs = new Samples()
  /** In thousandths. */
  readonly slowdown = new Samples()
  readonly wakeMs = new Samples()
  /** Sums of the parts of all wakes. */
  readonly wakeParts = { waitMs: 0, swapOutMs: 0, swapInMs: 0 }
  submitted = 0
  readonly ended: Record<string, number> = { completed: 0, failed: 0, cancelled: 0, lost: 0 }
  firstSubmittedAt: Instant | null = null
  lastFinishedAt: Instant | null = null
  /** Number of events by kind, for `sometimes` assertions and reports. */
  readonly counts = new Map<string, number>()
  readonly #open = new Map<string, OpenTask>()
  /** Open tasks that the store has lost. */
  readonly #lost = new Set<string>()
  readonly #wakes: WakeTimes
  readonly #onOutcome: ((outcome: TaskOutcome) => void) | null

  /** @param openTask as it is after the events that are recorded */
  constructor(
    openTask: (id: string) => Task | undefined,
    onOutcome: ((outcome: TaskOutcome) => void) | null,
  ) {
    this.#wakes = new WakeTimes((id) => openTask(id)?.placement ?? null)
    this.#onOutcome = onOutcome
  }

  get unfinished(): number {
    return this.#open.size
  }

  /** Tasks that have not ended and that the store has not lost. */
  get awaited(): number {
    return this.#open.size - this.#lost.size
  }

  /** Tasks that have not ended, in the order of submission. */
  *open(): IterableIterator<OpenOutcome> {
    for (const [id, task] of this.#open) yield { id, ...task }
  }

  submittedTask(id: string, at: Instant, aloneMs: DurationMs | null): void {
    this.#open.set(id, { submittedAt: at, startedAt: null, aloneMs })
    this.submitted += 1
    this.firstSubmittedAt ??= at
  }

  /**
   * The store went back to an earlier state: tasks that it lost never end, and tasks that it has again count
   * as submitted again.
   */
  setBack(openTasks: readonly Pick<TaskRecord, 'id' | 'submittedAt' | 'firstStartedAt'>[]): void {
    this.#lost.clear()
    const known = new Set(openTasks.map(({ id }) => id))
    for (const id of this.#open.keys()) if (!known.has(id)) this.#lost.add(id)
    for (const { id, submittedAt, firstStartedAt } of openTasks) {
      if (this.#open.has(id)) continue
      this.submittedTask(id, submittedAt, null)
      if (firstStartedAt !== null) this.startedBefore(id, firstStartedAt)
    }
  }

  /** Returns whether it is open. */
  knows(id: string): boolean {
    return this.#open.has(id)
  }

  /** It was running before this run, so it has no wait in this run. */
  startedBefore(id: string, at: Instant): void {
    const task = this.#open.get(id)
    if (task !== undefined) task.startedAt = at
  }

  record(events: readonly Event[]): void {
    for (const event of events) {
      if (event.taskId === null) continue
      this.#woken(event)
      if (event.kind === 'task_submitted') this.#lost.delete(event.taskId)
      else if (event.kind === 'task_started') this.#started(event.taskId, event.at)
      else if (event.kind === 'task_finished')
        this.#finished(event.taskId, event.at, String(event.data['state']))
    }
  }

  #woken(event: Event): void {
    const wake = this.#wakes.take(event)
    if (wake === null) return
    this.wakeMs.add(totalOf(wake))
    this.wakeParts.waitMs += wake.waitMs
    this.wakeParts.swapOutMs += wake.swapOutMs
    this.wakeParts.swapInMs += wake.swapInMs
  }

  #started(id: string, at: Instant): void {
    const task = this.#open.get(id)
    if (task === undefined || task.startedAt !== null) return
    task.startedAt = at
    this.queueWaitMs.add(at - task.submittedAt)
  }

  #finished(id: string, at: Instant, state: string): void {
    const task = this.#open.get(id)
    if (task === undefined) return
    this.#open.delete(id)
    this.#lost.delete(id)
    this.ended[state] = (this.ended[state] ?? 0) + 1
    this.lastFinishedAt = at
    if (state === 'completed') {
      const jctMs = at - task.submittedAt
      this.jctMs.add(jctMs)
      if (task.aloneMs !== null && task.aloneMs > 0) this.slowdown.add(jctMs / task.aloneMs)
    }
    this.#onOutcome?.({ id, ...task, finishedAt: at, state })
  }
}
