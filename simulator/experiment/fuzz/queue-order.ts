/**
 * Checks the queue order: no task is placed while a task ahead of it waits that fits wherever it does
 * (semantics 4); under `fifo`, while a task ahead of it in its pool could run at all. Checked after a
 * transaction, in a world where a transaction is decided in one cycle. A task with reserved VRAM is checked
 * when the reservation begins: it keeps the reservation.
 */
import type { Event } from '../../../controller/model/event.ts'
import type { TaskReading } from '../../../controller/query/cluster-reading.ts'
import type { Report } from '../../check/violation.ts'
import type { World } from '../../world/world.ts'
import type { OwnersNow } from './owners.ts'

export class QueueOrder {
  readonly #world: World
  readonly #report: Report

  constructor(world: World, report: Report) {
    this.#world = world
    this.#report = report
  }

  /** Called after a transaction. */
  heard(events: readonly Event[], { before, begun }: OwnersNow): void {
    const { cluster } = this.#world.controller
    if (cluster.policy.queueAgingMs !== null) return
    for (const { task, kind } of begun) if (kind === 'placement') this.#judge(task, false)
    for (const { kind, taskId, data } of events) {
      const task =
        kind === 'task_placed' && !before.has(taskId ?? '') ? cluster.tasks.get(taskId ?? '') : undefined
      if (task !== undefined) this.#judge(task, data['when'] === 'now')
    }
  }

  #judge(task: TaskReading, isNow: boolean): void {
    const { cluster } = this.#world.controller
    for (const waiting of cluster.tasks.values()) {
      if (
        waiting.queue === null ||
        waiting.refusedBy !== null ||
        waiting.trouble.refusals.length > 0 ||
        !isAhead(waiting, task)
      )
        continue
      const isOvertaken =
        cluster.policy.strategy === 'fifo'
          ? cluster.isFeasible(waiting)
          : isNow && fitsWherever(waiting, task)
      if (isOvertaken)
        this.#report(`it is placed while ${waiting.spec.id}, which is ahead of it, waits`, {
          taskId: task.spec.id,
        })
    }
  }
}

function isAhead({ spec }: TaskReading, { spec: other }: TaskReading): boolean {
  if (poolOf(spec.groups) !== poolOf(other.groups)) return false
  return spec.priority === other.priority ? spec.seq < other.seq : spec.priority < other.priority
}

/** Equal except for the demand, which is not larger. */
function fitsWherever({ spec }: TaskReading, { spec: other }: TaskReading): boolean {
  const isAlike =
    spec.gpuCount === other.gpuCount && spec.gpuMode === other.gpuMode && spec.noswap === other.noswap
  return isAlike && spec.vramMib <= other.vramMib && isRunAlike(spec, other)
}

/** Both or neither require a server that runs commands, or containers, or sets limits. */
function isRunAlike(one: TaskReading['spec'], other: TaskReading['spec']): boolean {
  const { command, image = null, limits = null } = one
  const { command: otherCommand, image: otherImage = null, limits: otherLimits = null } = other
  return (
    (command === null) === (otherCommand === null) &&
    (image === null) === (otherImage === null) &&
    (limits === null) === (otherLimits === null)
  )
}

function poolOf(groups: readonly string[]): string {
  return groups.join('\n')
}
