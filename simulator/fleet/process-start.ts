/**
 * The start of a process: from the launch order until it runs and its server reports it. Its VRAM is in use
 * from the order on; its work and the times of its growth begin only when it runs.
 */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type { SimClock } from '../kernel/virtual-clock.ts'
import type { GpuModel } from '../scenario/scenario.ts'

/** A start that takes no time is complete in the same instant, after the caller. */
const AT_ONCE: DurationMs = 0

export class ProcessStart {
  /** When the process begins, unless it ends before. */
  readonly at: Instant
  readonly #clock: SimClock

  /** A process launched now. */
  constructor(clock: SimClock, { startMs = AT_ONCE }: Pick<GpuModel, 'startMs'>) {
    this.#clock = clock
    this.at = clock.now() + startMs
  }

  /**
   * Never calls `begin` synchronously.
   * @param begin must check whether the process has ended by then
   */
  whenOver(begin: () => void): void {
    if (this.at > this.#clock.now()) this.#clock.at(this.at, begin, RANK_DEVICE)
    else this.#clock.soon(begin, RANK_DEVICE)
  }
}
