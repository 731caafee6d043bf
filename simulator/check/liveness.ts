/**
 * `eventually`: a condition that every task must reach in time. `within` counts from the latest of: its
 * submission, the start of its wait, and the end of the last fault. Without `within`, the limit is the end of
 * the run.
 */
import type { Event } from '../../controller/model/event.ts'
import type { Instant } from '../../protocol/units.ts'
import type { EventuallyAssertion } from '../scenario/assertions.ts'
import type { RuleContext } from './always-rule.ts'
import type { ShadowTask } from './shadow.ts'

export class Liveness {
  readonly #that: EventuallyAssertion['that']
  readonly #withinMs: number | null
  readonly #context: RuleContext

  constructor({ that, withinMs }: EventuallyAssertion, context: RuleContext) {
    this.#that = that
    this.#withinMs = withinMs
    this.#context = context
  }

  /** The shadow state does not include the event yet. */
  before({ kind, taskId, at }: Event): void {
    const task = this.#context.shadow.tasks.get(taskId ?? '')
    if (task === undefined) return
    if (
      this.#that === 'all_tasks_finish'
        ? kind === 'task_finished'
        : kind === 'task_started' && isAwaited(task)
    )
      this.#reached(task, at)
    // A task that is cancelled while it waits is removed, but it may have waited too long
    // already.
    if (this.#that === 'every_feasible_task_runs' && kind === 'task_finished' && isAwaited(task))
      this.#reached(task, at)
  }

  /** The run is over. */
  finish(now: Instant): void {
    for (const task of this.#context.shadow.tasks.values()) {
      const isReached =
        this.#that === 'every_feasible_task_runs' &&
        (!isAwaited(task) || task.pendingSince > now || !this.#context.shadow.isFeasible(task))
      if (!isReached && (this.#withinMs === null || now > this.#deadline(task)))
        this.#report(task, `it has not ${this.#what()}`)
    }
  }

  #reached(task: ShadowTask, at: Instant): void {
    if (this.#withinMs === null || at <= this.#deadline(task)) return
    if (this.#that === 'every_feasible_task_runs' && !this.#context.shadow.isFeasible(task)) return
    this.#report(task, `it has ${this.#what()} ${at - this.#deadline(task)} ms too late`)
  }

  /** Never while a fault is active or planned. */
  #deadline({ submittedAt, pendingSince }: ShadowTask): Instant {
    const { faults } = this.#context.observed
    const healedAt = faults === null ? 0 : (faults.healedAt() ?? Infinity)
    const since = this.#that === 'all_tasks_finish' ? submittedAt : pendingSince
    return Math.max(since, healedAt) + (this.#withinMs ?? 0)
  }

  #what(): string {
    return this.#that === 'all_tasks_finish' ? 'finished' : 'started'
  }

  #report(task: ShadowTask, detail: string): void {
    this.#context.report(detail, {
      taskId: task.id,
      ...(task.placement === null ? {} : { nodeId: task.placement.nodeId }),
    })
  }
}

/** It waits for a placement, or for its start there. */
function isAwaited({ placement }: ShadowTask): boolean {
  return placement === null || placement.residency === 'none'
}
