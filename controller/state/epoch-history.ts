/**
 * Epochs that have written to this store, and their first events: enough to judge whether the store has what
 * a node has heard of (docs/protocol.md, "A store that went back to an earlier state").
 */
import type { BehindReason } from '../model/controller-status.ts'
import { MIN_EPOCHS_AHEAD } from '../model/epoch-after-loss.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import type { EpochRecord } from '../ports/store.ts'

/** What a node reports about the controllers that it has obeyed. */
export type NodeMark = Pick<Envelope, 'epoch' | 'controller' | 'event_seq'>

/** `accepted_loss`: the store lacks it, and an administrator restored the store or accepted the loss. */
export type MarkVerdict = 'known' | 'accepted_loss' | BehindReason

/** The mark of the controller that judges. */
export interface OwnMark {
  readonly epoch: number
  readonly controller: string
  /** Number of its newest event, durable or not. */
  readonly lastEventSeq: number
}

export class EpochHistory {
  /** Ascending. */
  #starts: readonly EpochRecord[] = []
  /** The history before the first recorded epoch is lost, and an operator accepted the loss. */
  #isLostBeforeFirst = false

  capture(): { readonly starts: readonly EpochRecord[]; readonly isLostBeforeFirst: boolean } {
    return { starts: this.#starts, isLostBeforeFirst: this.#isLostBeforeFirst }
  }

  restore({ starts, isLostBeforeFirst }: ReturnType<EpochHistory['capture']>): void {
    this.#starts = starts
    this.#isLostBeforeFirst = isLostBeforeFirst
  }

  /** Sets the epochs loaded from the store. */
  load(starts: readonly EpochRecord[]): void {
    this.#starts = starts
  }

  /** @param isAfterLoss the store was restored, or a loss was accepted, and no epoch has been recorded yet */
  begin(start: EpochRecord, isAfterLoss: boolean): void {
    const first = this.#starts[0] ?? start
    this.#isLostBeforeFirst = (isAfterLoss && first === start) || first.epoch > MIN_EPOCHS_AHEAD
    this.#starts = [...this.#starts, start]
  }

  judge(mark: NodeMark, own: OwnMark): MarkVerdict {
    const eventSeq = mark.event_seq ?? 0
    if (mark.epoch > own.epoch) return 'higher_epoch'
    if (mark.epoch < own.epoch) return this.#judgeEarlier(mark, eventSeq)
    if (mark.controller !== undefined && mark.controller !== own.controller) return 'other_controller'
    return eventSeq > own.lastEventSeq ? 'missing_events' : 'known'
  }

  #judgeEarlier(mark: NodeMark, eventSeq: number): MarkVerdict {
    const place = this.#starts.findIndex((start) => start.epoch > mark.epoch)
    const next = this.#starts[place]
    if (next === undefined) return 'known'
    const isOther = isOfOther(mark, this.#starts[place - 1])
    if (!isOther && eventSeq < next.firstEventSeq) return 'known'
    if (this.#isAfterLoss(place)) return 'accepted_loss'
    return isOther ? 'other_controller' : 'missing_events'
  }

  /**
   * Returns true if a restore or an accepted loss has raised the epoch since. Everything missing by then is
   * accepted with it, including an earlier, undetected loss. A smaller gap is a leader that ended before its
   * epoch was recorded.
   */
  #isAfterLoss(place: number): boolean {
    return this.#starts.some(({ epoch }, index) => {
      if (index < place) return false
      const before = this.#starts[index - 1]
      return before === undefined ? this.#isLostBeforeFirst : epoch - before.epoch >= MIN_EPOCHS_AHEAD
    })
  }
}

/**
 * After a store went back to an earlier state its epochs are used again: the same number may belong to
 * another process, or to none in this store.
 */
function isOfOther({ epoch, controller }: NodeMark, written: EpochRecord | undefined): boolean {
  if (written === undefined) return false
  if (written.epoch !== epoch) return true
  return controller !== undefined && written.controller !== undefined && controller !== written.controller
}
