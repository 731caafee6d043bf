/** Out of VRAM and back, whole tasks only. The server has the last word on its GPUs (R12). */
import type { RefusalReason, SwapCommand } from '../../protocol/messages.ts'
import type { Mib, WireResidency } from '../../protocol/units.ts'
import type { Attempt } from './attempt.ts'
import type { SwapOutcome } from './device.ts'
import type { Growths } from './growths.ts'
import type { Parts } from './parts.ts'

export class Swaps {
  readonly #parts: Parts
  readonly #growths: Growths

  constructor(parts: Parts, growths: Growths) {
    this.#parts = parts
    this.#growths = growths
  }

  /** Null: it leaves, or was told to by this very order before. */
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
   * This server's own decision: less than the reserve is free on a GPU of it. Says whether it leaves; one
   * that is noswap, wants the GPU, or has no room in host memory does not.
   */
  relieve(attempt: Attempt): boolean {
    const { ledger } = this.#parts
    const bytesMib = attempt.residentMib * attempt.gpus.length
    if (attempt.residency !== 'resident' || attempt.endsAs !== null || attempt.isFrozen) return false
    if (attempt.noswap === 1 || attempt.wantsGpu || !ledger.fitsHost(bytesMib)) return false
    this.#leave(attempt, bytesMib)
    return true
  }

  /** Null: it returns, or was told to by this very order before. */
  swapIn(command: SwapCommand, attempt: Attempt): RefusalReason | null {
    const { ledger, device } = this.#parts
    if (isRepeated(command, attempt)) return null
    const refusal = refusalOf(command, attempt, 'swapped_out')
    if (refusal !== null) return refusal
    if (!ledger.fits(attempt.gpus, attempt.vramMib)) return 'no_vram'
    attempt.residency = 'swapping_in'
    attempt.lastSwap = command
    ledger.enterVram(attempt, attempt.vramMib)
    device.resume(attempt.taskId, attempt.attempt, (outcome) => this.#resumed(attempt, outcome))
    return null
  }

  #leave(attempt: Attempt, bytesMib: Mib): void {
    const { clock, ledger, device } = this.#parts
    attempt.residency = 'swapping_out'
    attempt.lastSwapOutAt = clock.now()
    ledger.enterHost(attempt, bytesMib)
    this.#growths.forget(attempt)
    device.suspend(attempt.taskId, attempt.attempt, (outcome) => this.#suspended(attempt, outcome))
  }

  #suspended(attempt: Attempt, outcome: SwapOutcome): void {
    const { ledger } = this.#parts
    if (!attempt.isHere || attempt.residency !== 'swapping_out') return
    if (outcome === 'done') {
      ledger.leaveVram(attempt)
      this.#moved(attempt, 'swapped_out', outcome)
      this.#growths.vramFreed()
    } else {
      ledger.leaveHost(attempt)
      if (outcome === 'not_swappable') attempt.noswap = 1
      this.#moved(attempt, 'resident', outcome)
      this.#growths.settle(attempt)
    }
  }

  #resumed(attempt: Attempt, outcome: SwapOutcome): void {
    const { ledger } = this.#parts
    if (!attempt.isHere || attempt.residency !== 'swapping_in') return
    if (outcome === 'done') {
      ledger.leaveHost(attempt)
      this.#moved(attempt, 'resident', outcome)
      this.#growths.settle(attempt)
    } else {
      ledger.leaveVram(attempt)
      this.#moved(attempt, 'swapped_out', outcome)
      this.#growths.vramFreed()
    }
  }

  /**
   * A swap is over, as ordered or not: the generation counts it, so that what was decided before it is stale.
   */
  #moved(attempt: Attempt, residency: WireResidency, outcome: SwapOutcome): void {
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
    })
  }
}

/** This very decision was obeyed before: an event tells, or has told, how it ended (R7). */
function isRepeated({ op, generation }: SwapCommand, { lastSwap }: Attempt): boolean {
  return lastSwap !== null && lastSwap.op === op && lastSwap.generation === generation
}

/**
 * Stale, contrary, or for a task whose lease is over: nothing moves before the controller has answered a
 * heartbeat (R4, R12).
 */
function refusalOf(command: SwapCommand, attempt: Attempt, from: WireResidency): RefusalReason | null {
  if (command.generation !== attempt.generation) return 'stale_generation'
  if (attempt.residency !== from || isEnding(command, attempt)) return 'contrary'
  return attempt.isFrozen ? 'no_lease' : null
}

/** One that is being stopped with a grace may return, to handle SIGTERM. */
function isEnding({ op }: SwapCommand, { endsAs, hasGrace }: Attempt): boolean {
  return endsAs !== null && !(hasGrace && op === 'swap_in')
}

/** A noswap task never leaves; one that wants the GPU only when max_residency asked (R12). */
function refusalToLeave(command: SwapCommand, attempt: Attempt): RefusalReason | null {
  if (attempt.noswap === 1) return 'noswap'
  return attempt.wantsGpu && !command.force_active ? 'wants_gpu' : null
}
