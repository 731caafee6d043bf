/**
 * Where servers do not signal that a task wants the GPU, whoever is away is asked back: after a probe period
 * (`swap_in_probe_seconds`) at the latest it stands in its node's queue, whatever has happened meanwhile
 * (semantics 5, "Return"). When it returns from there is a matter of bytes; until it has returned it is asked
 * for. Looked at when an instant is over; with a controller that begins the period is counted anew here.
 */
import type { Event } from '../../../controller/model/event.ts'
import type { Instant } from '../../../protocol/units.ts'
import type { Report } from '../../check/violation.ts'
import type { World } from '../../world/world.ts'

export class ProbeWatch {
  readonly #world: World
  readonly #report: Report
  readonly #isNeeded: boolean
  /** By task id: when at the latest it asks to return, of those that are away and do not. */
  readonly #dueAt = new Map<string, Instant>()
  #cluster: unknown = null

  constructor(world: World, report: Report) {
    this.#world = world
    this.#report = report
    this.#isNeeded = world.plan.nodes.some(({ signalsWanted }) => signalsWanted === false)
  }

  /** One that moved, or was told to, may be away again in the same instant: that is another absence. */
  heard(events: readonly Event[]): void {
    for (const { kind, taskId } of events)
      if (kind === 'task_residency' && taskId !== null) this.#dueAt.delete(taskId)
  }

  afterInstant(): void {
    if (!this.#isNeeded) return
    const { cluster } = this.#world.controller
    if (cluster !== this.#cluster || !this.#world.isControllerUp) this.#dueAt.clear()
    this.#cluster = cluster
    if (!this.#world.isControllerUp) return
    const now = this.#world.clock.now()
    for (const { spec, placement } of this.#world.controller.views.openTasks()) {
      const isForgotten =
        placement !== null && placement.residency === 'swapped_out' && placement.entry === null
      if (!isForgotten || placement.isOver || placement.node.signalsWanted) this.#dueAt.delete(spec.id)
      else if (cluster.tasks.get(spec.id)?.placement?.isProbed === true)
        this.#reportGivenUp(spec.id, placement.node.id)
      else this.#look(spec.id, placement.node.id, now + cluster.policy.swapInProbeMs, now)
    }
  }

  #reportGivenUp(taskId: string, nodeId: string): void {
    this.#report('its probe has asked for it, it has not been back since, and nothing asks any more', {
      taskId,
      nodeId,
    })
  }

  #look(taskId: string, nodeId: string, latest: Instant, now: Instant): void {
    const dueAt = this.#dueAt.get(taskId)
    if (dueAt === undefined) this.#dueAt.set(taskId, latest)
    else if (now >= dueAt)
      this.#report(
        `it is away, should have asked to return ${now - dueAt} ms ago, and nothing has asked for it`,
        { taskId, nodeId },
      )
  }
}
