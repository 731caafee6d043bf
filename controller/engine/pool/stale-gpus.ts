/** Which GPUs have changed since the pools were told: their books, or only who may leave them. */
import { clear } from '../../domain/list-edit.ts'
import type { LiveGpu } from '../live.ts'
import { deriveFigures } from './capacity-figures.ts'

export class StaleGpus {
  readonly #gpus: LiveGpu[] = []

  get size(): number {
    return this.#gpus.length
  }

  /** In the order in which they changed. */
  all(): readonly LiveGpu[] {
    return this.#gpus
  }

  markLedger(gpu: LiveGpu): void {
    gpu.isLedgerStale = true
    this.markEligibleBytes(gpu)
  }

  /** More of its bytes may leave, or fewer: what fits now stays. */
  markEligibleBytes(gpu: LiveGpu): void {
    if (gpu.isStale) return
    gpu.isStale = true
    this.#gpus.push(gpu)
  }

  refreshPools(): void {
    for (const gpu of this.#gpus) {
      gpu.isStale = false
      if (gpu.isLedgerStale) refreshPoolsOf(gpu)
      else for (const member of gpu.poolMembers) member.pool.markEligibleBytes(member)
    }
    clear(this.#gpus)
  }
}

function refreshPoolsOf(gpu: LiveGpu): void {
  gpu.isLedgerStale = false
  const areFiguresChanged = deriveFigures(gpu.figures, gpu)
  for (const member of gpu.poolMembers) member.pool.mark(member, areFiguresChanged)
}
