/**
 * Checks stops (docs/protocol.md, "A stop"): SIGTERM comes first, so a task does not end before it has
 * handled it or its grace period is over, unless it completes by itself; and a stop always ends. Without
 * faults, both are checked exactly, from events and from the processes on the devices; with faults, from the
 * servers' reports.
 */
import type { Event } from '../../../controller/model/event.ts'
import type { Envelope } from '../../../protocol/envelope.ts'
import type { FinishedEvent } from '../../../protocol/messages.ts'
import type { Instant } from '../../../protocol/units.ts'
import type { Report } from '../../check/violation.ts'
import { idOfNode } from '../../scenario/node-id.ts'
import type { World } from '../../world/world.ts'

interface Stop {
  readonly attempt: number
  readonly orderedAt: Instant
  /** End of the grace period: the earliest of all orders applies. */
  graceUntil: Instant
}

/** What a server reports about a process that ended because of the stop; other ends have other causes. */
const ENDED_BY_STOP = /^(?:stopped$|it could not run within the stop grace)/
/** A server's clock may run 5% fast, and times are whole milliseconds. */
const CLOCK_SHARE = 0.94
/** From the end of the grace period to the controller's event, without lost or late messages. */
const SOON_MS = 1_000

export class StopRules {
  readonly #world: World
  readonly #report: Report
  readonly #isCalm: boolean
  readonly #stops = new Map<string, Stop>()
  /** Without faults: tasks whose process has ended by itself, until the controller's event. */
  readonly #ownEnds = new Set<string>()

  constructor(world: World, report: Report, isCalm: boolean) {
    this.#world = world
    this.#report = report
    this.#isCalm = isCalm
    world.faults?.onSetBack(() => this.#stops.clear())
    if (isCalm) this.#watchDevices()
  }

  heard(events: readonly Event[]): void {
    for (const event of events) {
      const { kind, taskId, data } = event
      if (taskId === null) continue
      if (kind === 'task_updated' && data['stopping'] === true) this.#ordered(taskId, event.at)
      if (kind === 'task_finished' || kind === 'task_returned') this.#over(taskId, event)
    }
  }

  /** Called with an answered message: the ends that it reports came before. */
  answered({ body }: Envelope): void {
    if (body.op !== 'events') return
    for (const entry of body.entries) if (entry.kind === 'finished') this.#ended(entry)
  }

  /** Called at the end of an instant. */
  afterInstant(): void {
    if (!this.#isCalm) return
    const now = this.#world.clock.now()
    for (const [taskId, { graceUntil }] of this.#stops) {
      if (now <= graceUntil + SOON_MS) continue
      this.#report(`it is being stopped, but its grace period ended ${now - graceUntil} ms ago`, { taskId })
      this.#stops.delete(taskId)
    }
  }

  #ordered(taskId: string, at: Instant): void {
    const placement = this.#world.controller.cluster.tasks.get(taskId)?.placement ?? null
    // A task that has not started has no process to handle a signal.
    if (placement === null || placement.stopping === null || placement.startedAt === null) return
    const graceUntil = at + (placement.stopping.graceMs ?? 0)
    const known = this.#stops.get(taskId)
    if (known?.attempt === placement.attempt) known.graceUntil = Math.min(known.graceUntil, graceUntil)
    else this.#stops.set(taskId, { attempt: placement.attempt, orderedAt: at, graceUntil })
  }

  #watchDevices(): void {
    for (const node of this.#world.plan.nodes) {
      const device = this.#world.fleet.deviceOf(idOfNode(node))
      if (device !== undefined) device.onOwnEnd = (taskId) => this.#ownEnds.add(taskId)
    }
  }

  #over(taskId: string, { at }: Event): void {
    const stop = this.#stops.get(taskId)
    this.#stops.delete(taskId)
    if (this.#ownEnds.delete(taskId) || stop === undefined || !this.#isCalm) return
    this.#notBefore(taskId, stop, at, 1)
  }

  #ended({ task_id: taskId, attempt, detail }: FinishedEvent): void {
    const stop = this.#stops.get(taskId)
    if (stop === undefined || stop.attempt !== attempt || !ENDED_BY_STOP.test(detail ?? '')) return
    this.#notBefore(taskId, stop, this.#world.clock.now(), CLOCK_SHARE)
  }

  /** @param share of the time that must have passed */
  #notBefore(taskId: string, { orderedAt, graceUntil }: Stop, at: Instant, share: number): void {
    const takesMs = this.#world.workload.stopTakesMs(taskId)
    const leastMs = Math.min(takesMs, graceUntil - orderedAt)
    if (at - orderedAt >= leastMs * share) return
    const graceMs = graceUntil - orderedAt
    this.#report(
      `killed ${at - orderedAt} ms after its stop was ordered; its grace period is ${graceMs} ms and ` +
        `it takes ${takesMs} ms`,
      {
        taskId,
      },
    )
  }
}
