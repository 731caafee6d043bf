/**
 * The work of a task as the controller observed it: GPU work between idle times, from its demand for the GPU
 * and its share.
 */
import type { DurationMs, Instant, Microseconds } from '../../../protocol/units.ts'
import type { Work } from '../../trace/trace-format.ts'

/** A task that has not ended continues as it was, for longer than any range. */
const ON_AND_ON_MS: DurationMs = 31_536_000_000

export interface Seen {
  readonly attempt: number
  readonly wantsGpu: boolean
  /** GPU time since its submission, on one of its GPUs. */
  readonly servedUs: Microseconds
}

export class ObservedWork {
  #phases: { busyUs: Microseconds; idleMs: DurationMs }[] = []
  #last: (Seen & { readonly at: Instant }) | null = null

  /** It is placed and has started. */
  see(seen: Seen, at: Instant): void {
    const last = this.#last
    this.#last = { ...seen, at }
    // A new attempt starts its work from the beginning.
    if (last === null || last.attempt !== seen.attempt) {
      this.#phases = []
      return
    }
    let phase = this.#phases.at(-1)
    const startsAnew = phase === undefined || (last.wantsGpu && phase.idleMs > 0)
    if (phase === undefined || startsAnew) this.#phases.push((phase = { busyUs: 0, idleMs: 0 }))
    if (last.wantsGpu) phase.busyUs += seen.servedUs - last.servedUs
    else phase.idleMs += at - last.at
  }

  /** @param isOver it completed by itself; otherwise it continues with its last activity */
  work(isOver: boolean): Work {
    const phases = this.#phases.map(
      ({ busyUs, idleMs }) => [Math.round(busyUs / 1000), idleMs] as [DurationMs, DurationMs],
    )
    if (!isOver) {
      if (this.#last?.wantsGpu === false && phases.length > 0)
        (phases.at(-1) as [number, number])[1] += ON_AND_ON_MS
      else phases.push([ON_AND_ON_MS, 0])
    }
    const some = phases.filter(([busyMs, idleMs]) => busyMs + idleMs > 0)
    return { kind: 'phases', phases: some.length === 0 ? [[1, 0]] : some }
  }
}
