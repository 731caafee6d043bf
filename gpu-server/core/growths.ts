/**
 * Allocations that a task waits for (protocol, "Allocation pressure"). The device blocks the allocation until
 * the controller has granted it, the task is resident, and the reserve is kept (R12).
 */
import type { RefusalReason } from '../../protocol/messages.ts'
import type { Mib } from '../../protocol/units.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type { Attempt } from './attempt.ts'
import type { Parts } from './parts.ts'

export class Growths {
  readonly #parts: Parts
  /** Resident tasks that were granted more VRAM while they were out, and for which it does not fit yet. */
  readonly #late = new Set<Attempt>()
  #isLookPlanned = false
  /** The epoch of the controller that received all blocked allocations. */
  #askedEpoch = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The device blocks an allocation. One within the demand needs no grant. */
  wanted(attempt: Attempt, mib: Mib): void {
    attempt.heldMib = mib
    if (mib <= attempt.vramMib) this.#lookSoon(attempt)
    else this.#ask(attempt, mib)
  }

  /** A new controller does not know the blocked allocations: they were reported to its predecessor. */
  askNewController(): void {
    const { durable, tasks } = this.#parts
    if (this.#askedEpoch === durable.highestEpoch) return
    this.#askedEpoch = durable.highestEpoch
    this.vramFreed()
    for (const attempt of tasks.all()) {
      if (attempt.heldMib !== null && attempt.heldMib > attempt.vramMib) this.#ask(attempt, attempt.heldMib)
    }
  }

  /** Raises the demand to `mib`. Demand never shrinks, so a smaller grant is a delayed or repeated one. */
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

  /** The task is resident: a granted allocation succeeds if it fits by now. */
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

  /** Its blocked allocation is settled or requested once the controller has answered. */
  adopted(attempt: Attempt): void {
    this.#late.add(attempt)
  }

  /** VRAM was freed: checks the waiting allocations again. */
  vramFreed(): void {
    if (this.#late.size > 0) for (const attempt of this.#late) this.#lookSoon(attempt)
  }

  forget(attempt: Attempt): void {
    if (this.#late.size > 0) this.#late.delete(attempt)
  }

  /** Returns true when durable; if not, the demand is unchanged. */
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

  /** Deferred, because the device must not be called inside its own report. */
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

/** True if its bytes are in VRAM and stay there; otherwise the larger demand applies from its return. */
function growsNow({ residency }: Attempt): boolean {
  return residency !== 'swapping_out' && residency !== 'swapped_out'
}
