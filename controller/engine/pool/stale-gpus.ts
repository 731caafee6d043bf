/** Which GPUs have changed since the pools were told: their books, or only who may leave them. */
import { empty } from '../../domain/list-edit.ts'
import type { LiveGpu } from '../live.ts'
import { deriveFigures } from './near-figures.ts'

export class StaleGpus {
  readonly #gpus: LiveGpu[] = []

  get size(): number {
    return this.#gpus.length
  }

  /** In the order in which they changed. */
  all(): readonly LiveGpu[] {
    return this.#gpus
  }

  markBooks(gpu: LiveGpu): void {
    gpu.isBookStale = true
    this.markRipeness(gpu)
  }

  /** More of its bytes may leave, or fewer: what fits now stays. */
  markRipeness(gpu: LiveGpu): void {
    if (gpu.isStale) return
    gpu.isStale = true
    this.#gpus.push(gpu)
  }

  tellPools(): void {
    for (const gpu of this.#gpus) {
      gpu.isStale = false
      if (gpu.isBookStale) tellOfBooks(gpu)
      else for (const seat of gpu.seats) seat.pool.markRipeness(seat)
    }
    empty(this.#gpus)
  }
}

function tellOfBooks(gpu: LiveGpu): void {
  gpu.isBookStale = false
  const isNearChanged = deriveFigures(gpu.figures, gpu)
  for (const seat of gpu.seats) seat.pool.mark(seat, isNearChanged)
}
