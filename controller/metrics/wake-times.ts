/**
 * How long swapped-out tasks that want the GPU take to be resident again, from durable events: the wait for a
 * victim, the swap-out of the victims, and the swap-in.
 */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { Event } from '../model/event.ts'
import type { Placement } from '../model/placement.ts'

export interface Wake {
  /** Until the first victim leaves; everything that is not a copy. */
  readonly waitMs: DurationMs
  /** From the order of the first victim's swap-out to the end of the last. */
  readonly swapOutMs: DurationMs
  readonly swapInMs: DurationMs
}

/** State of a swapped-out task; at most one per placed task. */
interface Absence {
  readonly since: Instant
  /** When its swap-in began. */
  inFrom: Instant | null
  /** The swap-outs that made room for it. */
  outFrom: Instant | null
  outUntil: Instant | null
}

export class WakeTimes {
  readonly #absent = new Map<string, Absence>()
  /** The task for which each victim leaves. */
  readonly #leaving = new Map<string, string>()
  readonly #placementOf: (id: string) => Placement | null

  /** @param placementOf of an open task, as it is after the event */
  constructor(placementOf: (id: string) => Placement | null) {
    this.#placementOf = placementOf
  }

  /** Returns the wake that ended with the event, or null. */
  take({ kind, taskId, at, data }: Event): Wake | null {
    if (taskId === null) return null
    if (kind === 'task_finished' || kind === 'task_returned') this.#forget(taskId)
    if (kind !== 'task_residency') return null
    const { residency, because } = data
    if (residency === 'swapping_out') this.#leaves(taskId, String(because), at)
    else if (residency === 'swapped_out') this.#isOut(taskId, at)
    else if (residency === 'swapping_in') this.#returns(taskId, at)
    else if (residency === 'resident') return this.#woken(taskId, at)
    return null
  }

  #leaves(id: string, because: string, at: Instant): void {
    if (!because.startsWith('for ')) return
    const other = because.slice('for '.length)
    this.#leaving.set(id, other)
    const absence = this.#absent.get(other)
    if (absence !== undefined) absence.outFrom ??= at
  }

  #isOut(id: string, at: Instant): void {
    const other = this.#leaving.get(id)
    this.#leaving.delete(id)
    const absence = other === undefined ? undefined : this.#absent.get(other)
    if (absence !== undefined) absence.outUntil = at
    // A failed swap-in ends swapped out as well: the absence continues.
    if (!this.#absent.has(id))
      this.#absent.set(id, { since: at, inFrom: null, outFrom: null, outUntil: null })
  }

  #returns(id: string, at: Instant): void {
    const absence = this.#absent.get(id)
    if (absence !== undefined) absence.inFrom = at
  }

  #woken(id: string, at: Instant): Wake | null {
    const absence = this.#absent.get(id)
    this.#forget(id)
    const placement = this.#placementOf(id)
    if (absence === undefined || placement === null || !placement.wantsGpu) return null
    // A task that was swapped out while it wanted the GPU waits from the swap-out.
    const from = Math.max(absence.since, placement.wantsSince)
    if (from > at) return null
    const swapInMs = at - Math.max(from, absence.inFrom ?? at)
    const { outFrom, outUntil } = absence
    const swapOutMs =
      outFrom === null || outUntil === null ? 0 : Math.max(0, outUntil - Math.max(from, outFrom))
    return { waitMs: at - from - swapInMs - swapOutMs, swapOutMs, swapInMs }
  }

  #forget(id: string): void {
    this.#absent.delete(id)
    this.#leaving.delete(id)
  }
}

export function totalOf({ waitMs, swapOutMs, swapInMs }: Wake): DurationMs {
  return waitMs + swapOutMs + swapInMs
}
