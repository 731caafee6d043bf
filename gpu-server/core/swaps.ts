/** Swaps whole tasks out of VRAM and back. The server decides last about its GPUs (R12). */
import { MAX_RESIDENCY_DETAIL, type RefusalReason, type SwapCommand } from '../../protocol/messages.ts'
import type { Mib, Residency } from '../../protocol/units.ts'
import type { Attempt } from './attempt.ts'
import type { LeftAs, SwapOutcome } from './device.ts'
import type { Growths } from './growths.ts'
import type { Parts } from './parts.ts'

export class Swaps {
  readonly #parts: Parts
  readonly #growths: Growths

  constructor(parts: Parts, growths: Growths) {
    this.#parts = parts
    this.#growths = growths
  }

  /** Null: the swap-out starts, or this same order started it before. */
  swapOut(command: SwapCommand, attempt: Attempt): RefusalReason | null {
    const { ledger } = this.#parts
    if (isRepeated(command, attempt)) return null
    const bytesMib = attempt.residentMib * attempt.gpus.length
    const refusal = refusalOf(command, attempt, 'resident') ?? refusalToLeave(command, attempt)
    if (refusal !== null) return refusal
    if (!ledger.fitsHost(bytesMib)) return 'no_host_memory'
    attempt.lastSwap = command
    this.#leave(attempt, bytesMib)
    return null
  }

  /**
   * The server's own decision, because less than the reserve is free on one of its GPUs. Returns true if the
   * task is swapped out; false if it is noswap, wants the GPU, or does not fit in host memory.
   */
  relieve(attempt: Attempt): boolean {
    const { ledger } = this.#parts
    const bytesMib = attempt.residentMib * attempt.gpus.length
    if (attempt.residency !== 'resident' || attempt.endsAs !== null || attempt.isFrozen) return false
    if (attempt.noswap === 1 || attempt.wantsGpu || !ledger.fitsHost(bytesMib)) return false
    this.#leave(attempt, bytesMib)
    return true
  }

  /** Null: the swap-in starts, or this same order started it before. */
  swapIn(command: SwapCommand, attempt: Attempt): RefusalReason | null {
    const { ledger, device } = this.#parts
    if (isRepeated(command, attempt)) return null
    const refusal = refusalOf(command, attempt, 'swapped_out')
    if (refusal !== null) return refusal
    const backMib = attempt.vramMib - attempt.residentMib
    if (!ledger.fits(attempt.gpus, backMib)) return 'no_vram'
    attempt.residency = 'swapping_in'
    attempt.lastSwap = command
    ledger.enterVram(attempt, backMib)
    device.resume(attempt.taskId, attempt.attempt, (outcome) => this.#resumed(attempt, outcome))
    return null
  }

  /**
   * What it took back and does not leave again counts as its rest, so that it needs only the others' share to
   * return. It keeps counting as foreign where it does not fit together with what others were given.
   */
  restStays(attempt: Attempt, mib: Mib): boolean {
    const { ledger } = this.#parts
    const { residency, isOutByHooks, residentMib, vramMib } = attempt
    if (residency !== 'swapped_out' || !isOutByHooks || mib <= residentMib || mib >= vramMib) return false
    if (!ledger.fits(attempt.gpus, mib - residentMib)) return false
    attempt.residualMib = mib
    ledger.leaveHost(attempt)
    ledger.enterHost(attempt, (vramMib - mib) * attempt.gpus.length)
    ledger.enterVram(attempt, mib - residentMib)
    this.#moved(attempt, 'swapped_out', 'done')
    return true
  }

  #leave(attempt: Attempt, bytesMib: Mib): void {
    const { clock, ledger, device } = this.#parts
    attempt.residency = 'swapping_out'
    attempt.lastSwapOutAt = clock.now()
    ledger.enterHost(attempt, bytesMib)
    this.#growths.forget(attempt)
    device.suspend(attempt.taskId, attempt.attempt, (outcome, left = {}) =>
      this.#suspended(attempt, outcome, left),
    )
  }

  #suspended(attempt: Attempt, outcome: SwapOutcome, left: LeftAs): void {
    const { ledger } = this.#parts
    if (!attempt.isHere || attempt.residency !== 'swapping_out') return
    if (outcome === 'done') {
      attempt.isWakeable = left.isWakeable ?? false
      attempt.isOutByHooks = left.byHooks ?? false
      attempt.residualMib = Math.min(left.residualMib ?? 0, attempt.residentMib)
      ledger.leaveHost(attempt)
      ledger.enterHost(attempt, (attempt.residentMib - attempt.residualMib) * attempt.gpus.length)
      ledger.leaveVram(attempt, attempt.residualMib)
      this.#moved(attempt, 'swapped_out', outcome)
      this.#growths.vramFreed()
    } else {
      ledger.leaveHost(attempt)
      if (outcome === 'not_swappable') attempt.noswap = 1
      this.#moved(attempt, 'resident', outcome, left.whyNot)
      this.#growths.settle(attempt)
    }
  }

  #resumed(attempt: Attempt, outcome: SwapOutcome): void {
    const { ledger } = this.#parts
    if (!attempt.isHere || attempt.residency !== 'swapping_in') return
    if (outcome === 'done') {
      ledger.leaveHost(attempt)
      attempt.isWakeable = attempt.isOutByHooks = false
      attempt.residualMib = 0
      this.#moved(attempt, 'resident', outcome)
      this.#growths.settle(attempt)
    } else {
      ledger.leaveVram(attempt, attempt.residualMib)
      this.#moved(attempt, 'swapped_out', outcome)
      this.#growths.vramFreed()
    }
  }

  /**
   * Counts every finished swap, successful or not, in the generation, so that earlier decisions are stale.
   */
  #moved(attempt: Attempt, residency: Residency, outcome: SwapOutcome, whyNot?: string): void {
    attempt.residency = residency
    attempt.generation += 1
    this.#parts.durable.keep(attempt)
    this.#parts.durable.persist()
    this.#parts.emit({
      n: 0,
      kind: 'residency',
      task_id: attempt.taskId,
      attempt: attempt.attempt,
      residency,
      generation: attempt.generation,
      because: outcome === 'done' ? null : outcome,
      ...(attempt.isWakeable ? { wakeable: true } : {}),
      ...(attempt.residualMib > 0 ? { residual_mib: attempt.residualMib } : {}),
      ...(attempt.isOutByHooks ? { swap_method: attempt.swapMethod } : {}),
      ...(whyNot === undefined ? {} : { detail: whyNot.slice(0, MAX_RESIDENCY_DETAIL) }),
    })
  }
}

/** True if this same decision was obeyed before: its outcome is reported by an event (R7). */
function isRepeated({ op, generation }: SwapCommand, { lastSwap }: Attempt): boolean {
  return lastSwap !== null && lastSwap.op === op && lastSwap.generation === generation
}

/**
 * Refuses stale and contrary orders, and orders for a task whose lease is over: nothing moves before the
 * controller has answered a heartbeat (R4, R12).
 */
function refusalOf(command: SwapCommand, attempt: Attempt, from: Residency): RefusalReason | null {
  if (command.generation !== attempt.generation) return 'stale_generation'
  if (attempt.residency !== from || isEnding(command, attempt)) return 'contrary'
  return attempt.isFrozen ? 'no_lease' : null
}

/** An attempt that stops with a grace may return, to handle SIGTERM. */
function isEnding({ op }: SwapCommand, { endsAs, hasGrace }: Attempt): boolean {
  return endsAs !== null && !(hasGrace && op === 'swap_in')
}

/** A noswap task is never swapped out; a task that wants the GPU only for max_residency (R12). */
function refusalToLeave(command: SwapCommand, attempt: Attempt): RefusalReason | null {
  if (attempt.noswap === 1) return 'noswap'
  return attempt.wantsGpu && !command.force_active ? 'wants_gpu' : null
}
