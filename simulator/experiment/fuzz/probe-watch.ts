/**
 * Checks probes on servers that do not signal that a task wants the GPU: a swapped-out task enters its node's
 * queue after a probe period (`swap_in_probe_seconds`) at the latest (semantics 5, "Return"), and stays there
 * until it returns; when it returns depends on VRAM. Checked at the end of an instant; a new controller
 * restarts the period.
 */
import type { Event } from '../../../controller/model/event.ts'
import type { Instant } from '../../../protocol/units.ts'
import type { Report } from '../../check/violation.ts'
import type { World } from '../../world/world.ts'

export class ProbeWatch {
  readonly #world: World
  readonly #report: Report
  readonly #isNeeded: boolean
  /** By task id: the latest time of its probe, for swapped-out tasks without a request. */
  readonly #dueAt = new Map<string, Instant>()
  #cluster: unknown = null

  constructor(world: World, report: Report) {
    this.#world = world
    this.#report = report
    this.#isNeeded = world.plan.nodes.some(({ signalsWanted }) => signalsWanted === false)
  }

  /**
   * A task that moved, or was ordered to, may be swapped out again in the same instant: that is another
   * absence.
   */
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
    this.#report('its probe requested a return, but it has not returned and is no longer queued', {
      taskId,
      nodeId,
    })
  }

  #look(taskId: string, nodeId: string, latest: Instant, now: Instant): void {
    const dueAt = this.#dueAt.get(taskId)
    if (dueAt === undefined) this.#dueAt.set(taskId, latest)
    else if (now >= dueAt)
      this.#report(`it is swapped out, and the request for its return is ${now - dueAt} ms overdue`, {
        taskId,
        nodeId,
      })
  }
}
