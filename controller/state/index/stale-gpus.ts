/** GPUs that have changed since the pools were last updated: their ledger, or only their eligible bytes. */
import { clear } from '../../structures/list-edit.ts'
import type { LiveGpu } from '../facts.ts'
import { deriveFigures } from './capacity-figures.ts'

export class StaleGpus {
  readonly #gpus: LiveGpu[] = []

  get size(): number {
    return this.#gpus.length
  }

  /** In order of change. */
  all(): readonly LiveGpu[] {
    return this.#gpus
  }

  markLedger(gpu: LiveGpu): void {
    gpu.isLedgerStale = true
    this.markEligibleBytes(gpu)
  }

  /** The eligible bytes changed: demands that fit now are unaffected. */
  markEligibleBytes(gpu: LiveGpu): void {
    if (gpu.isStale) return
    gpu.isStale = true
    this.#gpus.push(gpu)
  }

  refreshPools(): void {
    for (const gpu of this.#gpus) {
      gpu.isStale = false
      if (gpu.isLedgerStale) refreshPoolsOf(gpu)
      else for (const index of gpu.indexes) index.eligibleBytesChanged()
    }
    clear(this.#gpus)
  }
}

function refreshPoolsOf(gpu: LiveGpu): void {
  gpu.isLedgerStale = false
  const areFiguresChanged = deriveFigures(gpu.figures, gpu)
  for (const index of gpu.indexes) index.ledgerChanged(areFiguresChanged)
}
