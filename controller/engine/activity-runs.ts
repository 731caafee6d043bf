/**
 * The latest stretches in which tasks wanted the GPU, or did not: what a twin draws activity from. Bounded; a
 * restart forgets them.
 */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { ActivityRuns } from '../ports/twin.ts'
import type { LivePlacement } from './live.ts'

/** Stretches of each kind. */
export const MAX_ACTIVITY_RUNS = 4_096

export class RecentRuns {
  readonly #wanting = new RunRing()
  readonly #idle = new RunRing()

  /**
   * The placement is about to change its mind. A stretch that was spent away from VRAM, in part or in whole,
   * says nothing of the task alone.
   */
  ended({ wantsGpu, wantsSince, residency, residentSince }: LivePlacement, now: Instant): void {
    if (residency !== 'resident') return
    if (!wantsGpu) this.#idle.add(now - wantsSince)
    else if (residentSince <= wantsSince) this.#wanting.add(now - wantsSince)
  }

  /** Copies, oldest first. */
  all(): ActivityRuns {
    return { wantingMs: this.#wanting.all(), idleMs: this.#idle.all() }
  }

  /** Those of before, into a book that has none yet. */
  restore({ wantingMs, idleMs }: ActivityRuns): void {
    for (const ms of wantingMs) this.#wanting.add(ms)
    for (const ms of idleMs) this.#idle.add(ms)
  }
}

class RunRing {
  readonly #runs: DurationMs[] = []
  #next = 0

  add(ms: DurationMs): void {
    if (ms <= 0) return
    if (this.#runs.length < MAX_ACTIVITY_RUNS) this.#runs.push(ms)
    else this.#runs[this.#next] = ms
    this.#next = (this.#next + 1) % MAX_ACTIVITY_RUNS
  }

  all(): DurationMs[] {
    const isFull = this.#runs.length === MAX_ACTIVITY_RUNS
    return isFull ? [...this.#runs.slice(this.#next), ...this.#runs.slice(0, this.#next)] : [...this.#runs]
  }
}
