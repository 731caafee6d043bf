/**
 * Allocations that a task waits for (protocol, "Allocation pressure"). The device holds the allocation; it
 * goes through once the controller has granted it, the task is resident, and the reserve is kept (R12).
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
    this.vramFreed()
    for (const attempt of tasks.all()) {
      if (attempt.heldMib !== null && attempt.heldMib > attempt.vramMib) this.#ask(attempt, attempt.heldMib)
    }
  }

  /**
   * The demand is `mib` from now on; it never shrinks, so a smaller grant is one that was delayed or
   * repeated.
   */
  grant(attempt: Attempt, mib: Mib): RefusalReason | null {
    const { ledger } = this.#parts
    if (mib > attempt.vramMib) {
      const byMib = mib - attempt.residentMib
      if (growsNow(attempt) && !ledger.fits(attempt.gpus, byMib)) return 'no_vram'
      if (!this.#keepDemand(attempt, mib)) return 'disk_failed'
      if (growsNow(attempt)) ledger.enterVram(attempt, byMib)
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
    this.forget(attempt)
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

  /** What it holds is looked at, or asked for, once the controller has answered. */
  adopted(attempt: Attempt): void {
    this.#late.add(attempt)
  }

  /** Somebody has left VRAM: who waits for it is looked at again. */
  vramFreed(): void {
    if (this.#late.size > 0) for (const attempt of this.#late) this.#lookSoon(attempt)
  }

  forget(attempt: Attempt): void {
    if (this.#late.size > 0) this.#late.delete(attempt)
  }

  /** Says whether it is durable; if not it is as before. */
  #keepDemand(attempt: Attempt, mib: Mib): boolean {
    const { durable } = this.#parts
    const before = attempt.vramMib
    attempt.vramMib = mib
    durable.keep(attempt)
    if (durable.persist()) return true
    attempt.vramMib = before
    durable.keep(attempt)
    return false
  }

  #ask(attempt: Attempt, mib: Mib): void {
    this.#parts.emit({
      n: 0,
      kind: 'allocation_wanted',
      task_id: attempt.taskId,
      attempt: attempt.attempt,
      mib,
    })
  }

  /** Not inside the device's own report. */
  #lookSoon(attempt: Attempt): void {
    this.#late.add(attempt)
    if (this.#isLookPlanned) return
    this.#isLookPlanned = true
    const { clock } = this.#parts
    const look = (): void => {
      this.#isLookPlanned = false
      for (const waiting of [...this.#late]) {
        if (waiting.isHere) this.settle(waiting)
        else this.#late.delete(waiting)
      }
    }
    clock.soon(look, RANK_DEVICE)
  }
}

/** Its bytes are in VRAM and stay there; otherwise the larger demand counts from its return. */
function growsNow({ residency }: Attempt): boolean {
  return residency !== 'swapping_out' && residency !== 'swapped_out'
}
