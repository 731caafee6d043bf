/**
 * The latest periods in which tasks did or did not want the GPU: the twin samples activity from them. The
 * number is bounded; a restart of the controller forgets them.
 */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { ActivityRuns } from '../ports/twin.ts'
import type { LivePlacement } from './facts.ts'

/** Maximum number of periods of each kind. */
const MAX_ACTIVITY_RUNS = 4_096

export class RecentRuns {
  readonly #wanting = new RunRing()
  readonly #idle = new RunRing()

  /**
   * Call before the placement starts or stops wanting the GPU. A period that was partly or fully spent
   * outside VRAM says nothing about the task alone and is not recorded.
   */
  ended({ wantsGpu, wantsSince, residency, residentSince }: LivePlacement, now: Instant): void {
    if (residency !== 'resident') return
    if (!wantsGpu) this.#idle.add(now - wantsSince)
    else if (residentSince <= wantsSince) this.#wanting.add(now - wantsSince)
  }

  /** Returns copies, oldest first. */
  all(): ActivityRuns {
    return { wantingMs: this.#wanting.all(), idleMs: this.#idle.all() }
  }

  /** Restores captured periods. The object must be empty. */
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
