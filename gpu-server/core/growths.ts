/**
 * Allocations that a task waits for (protocol, "Allocation pressure"). The device holds the allocation; it goes through once the controller
 * has granted it, the task is resident, and the reserve is kept (R12).
 */
import type { RefusalReason } from '../../protocol/messages.ts'
import type { Mib } from '../../protocol/units.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type { Attempt } from './attempt.ts'
import type { Parts } from './parts.ts'

export class Growths {
  readonly #parts: Parts
  /** Resident ones that were granted more while they were out, and came back where it does not fit yet. */
  readonly #late = new Set<Attempt>()
  #isLookPlanned = false
  /** The controller that has been asked for all that is held. */
  #askedEpoch = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The device holds an allocation. One that is within the demand needs nobody's leave. */
  wanted(attempt: Attempt, mib: Mib): void {
    attempt.heldMib = mib
    if (mib <= attempt.vramMib) this.#lookSoon(attempt)
    else this.#ask(attempt, mib)
  }

  /** A controller that has just begun does not know who waits: only the one before it was told. */
  askNewController(): void {
    const { durable, tasks } = this.#parts
    if (this.#askedEpoch === durable.highestEpoch) return
    this.#askedEpoch = durable.highestEpoch
    for (const attempt of tasks.all()) {
      if (attempt.heldMib !== null && attempt.heldMib > attempt.vramMib) this.#ask(attempt, attempt.heldMib)
    }
  }

  /** The demand is `mib` from now on; it never shrinks, so a smaller grant is one that was delayed or repeated. */
  grant(attempt: Attempt, mib: Mib): RefusalReason | null {
    const { ledger } = this.#parts
    if (mib > attempt.vramMib) {
      if (growsNow(attempt)) {
        const byMib = mib - attempt.residentMib
        if (!ledger.fits(attempt.gpus, byMib)) return 'no_vram'
        ledger.enterVram(attempt, byMib)
      }
      attempt.vramMib = mib
      attempt.heldMib ??= mib
    }
    this.settle(attempt)
    return null
  }

  refuse(attempt: Attempt, mib: Mib): void {
    attempt.heldMib = null
    this.#parts.device.answerAllocation(attempt.taskId, attempt.attempt, mib, false)
  }

  /** It is resident: what it was granted goes through, if it fits by now. */
  settle(attempt: Attempt): void {
    this.#late.delete(attempt)
    if (attempt.residency !== 'resident') return
    const { ledger, device } = this.#parts
    const byMib = attempt.vramMib - attempt.residentMib
    if (byMib > 0) {
      if (!ledger.fits(attempt.gpus, byMib)) {
        this.#late.add(attempt)
        return
      }
      ledger.enterVram(attempt, byMib)
    }
    if (attempt.heldMib === null || attempt.heldMib > attempt.vramMib) return
    attempt.heldMib = null
    device.answerAllocation(attempt.taskId, attempt.attempt, attempt.vramMib, true)
  }

  /** Somebody has left VRAM: who waits for it is looked at again. */
  vramFreed(): void {
    for (const attempt of this.#late) this.#lookSoon(attempt)
  }

  forget(attempt: Attempt): void {
    this.#late.delete(attempt)
  }

  #ask(attempt: Attempt, mib: Mib): void {
    this.#parts.emit({ n: 0, kind: 'allocation_wanted', task_id: attempt.taskId, attempt: attempt.attempt, mib })
  }

  /** Not inside the device's own report. */
  #lookSoon(attempt: Attempt): void {
    this.#late.add(attempt)
    if (this.#isLookPlanned) return
    this.#isLookPlanned = true
    const { clock, tasks } = this.#parts
    const look = (): void => {
      this.#isLookPlanned = false
      for (const waiting of [...this.#late]) {
        if (tasks.isHere(waiting)) this.settle(waiting)
        else this.#late.delete(waiting)
      }
    }
    clock.at(clock.now(), look, RANK_DEVICE)
  }
}

/** Its bytes are in VRAM and stay there; otherwise the larger demand counts from its return. */
function growsNow({ residency }: Attempt): boolean {
  return residency !== 'swapping_out' && residency !== 'swapped_out'
}
