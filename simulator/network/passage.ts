/** What happens to one message on its way. */
import { RANK_MESSAGE } from '../../controller/ports/clock.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import type { DurationMs } from '../../protocol/units.ts'

/** A sender or receiver: a node by its name, or a controller (null). */
export interface Party {
  readonly node: string | null
}

export interface Passage {
  readonly isLost: boolean
  readonly copies: number
  /** Delay of each copy. */
  readonly delaysMs: readonly DurationMs[]
  /** Takes the message, and delivers it later. */
  readonly hold: ((deliver: () => void) => void) | null
}

export const UNHINDERED: Passage = { isLost: false, copies: 1, delaysMs: [0], hold: null }
export const LOST: Passage = { isLost: true, copies: 0, delaysMs: [], hold: null }

export interface LinkConditions {
  passage(from: Party, to: Party): Passage
  isCut(from: Party, to: Party): boolean
}

/**
 * @param arrive for a copy without delay
 * @param arriveLate for a copy that was held or delayed
 */
export function deliverCopies(
  clock: Clock,
  { copies, delaysMs, hold }: Passage,
  arrive: () => void,
  arriveLate: () => void,
): void {
  for (let copy = 0; copy < copies; copy++) {
    const delayMs = delaysMs[copy] as DurationMs
    const later = (): void => void clock.at(clock.now() + delayMs, arriveLate, RANK_MESSAGE)
    if (hold !== null) hold(delayMs === 0 ? arriveLate : later)
    else if (delayMs > 0) later()
    else arrive()
  }
}
