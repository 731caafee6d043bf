/**
 * How long a process takes to start: from the order to launch it until it runs and its server says so. Its
 * VRAM is taken from the order on. Only then does its own time begin: its work, and the times of its growth.
 */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type { SimClock } from '../kernel/virtual-clock.ts'
import type { GpuModel } from '../scenario/scenario.ts'

/** A start that takes no time is over in the same instant, after whoever ordered it. */
const AT_ONCE: DurationMs = 0

export class ProcessStart {
  /** When the process begins, if it is not ended before. */
  readonly at: Instant
  readonly #clock: SimClock

  /** One that is ordered now. */
  constructor(clock: SimClock, { startMs = AT_ONCE }: Pick<GpuModel, 'startMs'>) {
    this.#clock = clock
    this.at = clock.now() + startMs
  }

  /** Never inside the call. @param begin whoever is gone by then has to see that himself */
  whenOver(begin: () => void): void {
    if (this.at > this.#clock.now()) this.#clock.at(this.at, begin, RANK_DEVICE)
    else this.#clock.soon(begin, RANK_DEVICE)
  }
}
