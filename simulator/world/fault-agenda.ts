/**
 * What breaks when: each fault begins before anything else of its instant, and ends when its time is over.
 */
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import type { Instant } from '../../protocol/units.ts'
import type { Fault } from '../scenario/fault.ts'
import type { FaultTally } from '../results/fault-tally.ts'

/** Enacts faults. */
export interface FaultTarget {
  /** @param onFired for a fault that lies in wait: its moment has come, and its time begins */
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
  /** Not begun, or not ended. One that is never healed is over once it has begun. */
  #left: number
  #lastHealedAt: Instant

  constructor(options: FaultAgendaOptions) {
    this.#o = options
    this.#left = options.faults.length
    this.#lastHealedAt = options.startedAt
  }

  /** The instant at which the last fault was over; null while there are any. */
  get healedAt(): Instant | null {
    return this.#left === 0 ? this.#lastHealedAt : null
  }

  plan(): void {
    const { clock, startedAt, faults } = this.#o
    for (const fault of faults) clock.at(startedAt + fault.atMs, () => this.#begin(fault), RANK_DEVICE)
  }

  /** One more, now. */
  add(fault: Fault): void {
    this.#left += 1
    this.#o.clock.soon(() => this.#begin(fault), RANK_DEVICE)
  }

  /** Something that a fault has ended is there again. */
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
    // Nobody waits for one that waits itself, nor for one that is never healed.
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

/** It begins by lying in wait, and may never find its moment: nobody waits for it. */
function waitsForItsMoment(fault: Fault): boolean {
  return fault.kind === 'fsync_error' || (fault.kind === 'crash_controller' && fault.atPoint !== null)
}
