/**
 * The timer behind liveness: once a second the engine checks which nodes are silent and which leases have
 * ended, and renews its epoch (R5, R9).
 */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { Engine } from '../engine/engine.ts'
import type { PendingIds, PendingRestorer } from '../ports/pending-ids.ts'
import type { CancelTimer, Clock, TimerId } from '../ports/clock.ts'
import { RANK_ARRIVAL } from '../ports/clock.ts'

const LOOK_EVERY_MS: DurationMs = 1_000
/**
 * If a check is later than this, it was delayed, and so were all messages: the silence is no fault of the
 * nodes.
 */
const UNREACHABLE_FROM_MS: DurationMs = 5_000

/** When the next check is due. */
export interface LivenessTimerCheckpoint {
  readonly due: Instant
  readonly timer: TimerId
}

export class LivenessTimer {
  readonly #engine: Engine
  readonly #clock: Clock
  #due: Instant = 0
  #cancel: CancelTimer | null = null

  constructor(engine: Engine, clock: Clock) {
    this.#engine = engine
    this.#clock = clock
  }

  /** Starts the timer. */
  begin(): void {
    this.#due = this.#clock.now() + LOOK_EVERY_MS
    this.#cancel = this.#clock.at(this.#due, this.#look, RANK_ARRIVAL)
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = null
  }

  /** Null: the timer is stopped. */
  capture(ids: PendingIds): LivenessTimerCheckpoint | null {
    return this.#cancel === null ? null : { due: this.#due, timer: ids.timer(this.#cancel) }
  }

  restore(checkpoint: LivenessTimerCheckpoint | null, restorer: PendingRestorer): void {
    if (checkpoint === null) return
    this.#due = checkpoint.due
    this.#cancel = restorer.timer(checkpoint.timer, this.#look)
  }

  readonly #look = (): void => {
    const lateMs = this.#clock.now() - this.#due
    this.#engine.checkLiveness(lateMs >= UNREACHABLE_FROM_MS ? lateMs : 0)
    this.#engine.renewEpoch()
    this.begin()
  }
}
