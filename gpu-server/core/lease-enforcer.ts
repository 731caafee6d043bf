/**
 * Enforces the end of the run lease (R4): tasks with policy fail or requeue, and tasks whose start is not
 * acknowledged, freeze at its end and are ended after another lease. The others wait for the controller
 * without a limit.
 */
import type { DurationMs } from '../../protocol/units.ts'
import { RANK_MESSAGE } from '../../controller/ports/clock.ts'
import type { Attempt } from './attempt.ts'
import type { Parts } from './parts.ts'
import type { Runs } from './runs.ts'

export class LeaseEnforcer {
  readonly #parts: Parts
  readonly #runs: Runs
  #cancel: () => void = () => {}

  constructor(parts: Parts, runs: Runs) {
    this.#parts = parts
    this.#runs = runs
  }

  /**
   * Handles the answer to a message sent at `sentMono`. Returns true if no answer to a later message came
   * before.
   */
  renewed(sentMono: number, lengthMs: DurationMs): boolean {
    const { device, lease, envelopes, tasks } = this.#parts
    if (!lease.grant(sentMono, lengthMs)) return false
    if (!lease.isElided) device.lease(envelopes.instantOf(lease.untilMono), lengthMs)
    // An answer that took longer than the lease grants no lease.
    if (lease.holds(envelopes.mono())) for (const attempt of tasks.all()) this.#runs.thaw(attempt)
    this.#plan(lengthMs)
    return true
  }

  stop(): void {
    this.#cancel()
  }

  #plan(lengthMs: DurationMs): void {
    const { clock, envelopes, lease } = this.#parts
    if (lease.isElided) return
    this.#cancel()
    const endsAt = envelopes.instantOf(lease.untilMono)
    const end = (): void => {
      for (const attempt of this.#tasksWithoutGrace()) this.#runs.stop(attempt, 'lease_ended', 0)
    }
    const freeze = (): void => {
      for (const attempt of this.#tasksWithoutGrace()) this.#runs.freeze(attempt)
      this.#cancel = clock.at(endsAt + lengthMs, end, RANK_MESSAGE)
    }
    this.#cancel = clock.at(endsAt, freeze, RANK_MESSAGE)
  }

  #tasksWithoutGrace(): Attempt[] {
    return [...this.#parts.tasks.all()].filter(
      (attempt) => attempt.onNodeLoss !== 'wait' || !attempt.isStartAcknowledged,
    )
  }
}
