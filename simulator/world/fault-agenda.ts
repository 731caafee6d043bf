/** Schedules faults: each begins before anything else of its instant, and ends after its duration. */
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import type { Instant } from '../../protocol/units.ts'
import type { Fault } from '../scenario/fault.ts'
import type { FaultTally } from '../results/fault-tally.ts'

/** Applies faults. */
export interface FaultTarget {
  /** @param onFired for a fault that waits for an event: called at the event, when its duration begins */
  begin(fault: Fault, onFired: () => void): void
  end(fault: Fault): void
}

/** A fault begins or ends: for the journal. */
export type FaultNote = (phase: 'begins' | 'fires' | 'ends', fault: Fault) => void

export interface FaultAgendaOptions {
  readonly clock: Clock
  readonly startedAt: Instant
  readonly faults: readonly Fault[]
  readonly stage: FaultTarget
  readonly tally: FaultTally
  readonly note: FaultNote
}

export class FaultAgenda {
  readonly #o: FaultAgendaOptions
  /** Not begun, or not ended. A fault that never heals is over once it has begun. */
  #left: number
  #lastHealedAt: Instant

  constructor(options: FaultAgendaOptions) {
    this.#o = options
    this.#left = options.faults.length
    this.#lastHealedAt = options.startedAt
  }

  /** The instant at which the last fault ended; null while any remain. */
  get healedAt(): Instant | null {
    return this.#left === 0 ? this.#lastHealedAt : null
  }

  plan(): void {
    const { clock, startedAt, faults } = this.#o
    for (const fault of faults) clock.at(startedAt + fault.atMs, () => this.#begin(fault), RANK_DEVICE)
  }

  /** Adds a fault that begins now. */
  add(fault: Fault): void {
    this.#left += 1
    this.#o.clock.soon(() => this.#begin(fault), RANK_DEVICE)
  }

  /** A process or machine that a fault has ended is back. */
  recovered(): void {
    this.#lastHealedAt = this.#o.clock.now()
  }

  #begin(fault: Fault): void {
    const { stage, tally, note } = this.#o
    tally.begins(fault.kind)
    note('begins', fault)
    stage.begin(fault, () => {
      note('fires', fault)
      this.recovered()
      this.#endLater(fault, () => this.recovered())
    })
    // Faults that wait for an event, or never heal, are not waited for.
    if (waitsForItsMoment(fault) || fault.forMs === null) this.#over()
    else this.#endLater(fault, () => this.#over())
  }

  #endLater(fault: Fault, then: () => void): void {
    const { clock, stage, note } = this.#o
    const { forMs } = fault
    if (forMs === null) return
    const end = (): void => {
      stage.end(fault)
      if (forMs > 0) note('ends', fault)
      then()
    }
    if (forMs === 0) end()
    else clock.at(clock.now() + forMs, end, RANK_DEVICE)
  }

  #over(): void {
    this.#left -= 1
    this.recovered()
  }
}

/** It waits for an event that may never come, so it is not waited for. */
function waitsForItsMoment(fault: Fault): boolean {
  return fault.kind === 'fsync_error' || (fault.kind === 'crash_controller' && fault.atPoint !== null)
}
