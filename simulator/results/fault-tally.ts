/**
 * How often each kind of fault began, and how often it had an effect: a partition without messages has none.
 */
import { FAULT_KINDS } from '../scenario/fault.ts'
import type { FaultKind } from '../scenario/fault.ts'

export interface FaultCount {
  /** Faults of this kind that began. */
  readonly begun: number
  /**
   * Their effects: messages lost, held, delayed, duplicated or reordered; processes ended; commits refused or
   * delayed; swaps slowed or refused.
   */
  readonly fired: number
}

export type FaultCounts = Readonly<Record<FaultKind, FaultCount>>

export class FaultTally {
  readonly #begun = new Map<FaultKind, number>()
  readonly #fired = new Map<FaultKind, number>()

  begins(kind: FaultKind): void {
    this.#begun.set(kind, (this.#begun.get(kind) ?? 0) + 1)
  }

  fires(kind: FaultKind, times = 1): void {
    if (times > 0) this.#fired.set(kind, (this.#fired.get(kind) ?? 0) + times)
  }

  fired(kind: FaultKind): number {
    return this.#fired.get(kind) ?? 0
  }

  counts(): FaultCounts {
    const entries = FAULT_KINDS.map((kind) => [
      kind,
      { begun: this.#begun.get(kind) ?? 0, fired: this.fired(kind) },
    ])
    return Object.fromEntries(entries) as FaultCounts
  }
}
