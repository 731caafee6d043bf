/** Pending tasks and placed GPUs of each owner, tracked only where limits exist. */
import type { OwnerLimits } from '../model/owner-limits.ts'
import type { LiveTask } from './facts.ts'

export class OwnerUsage {
  readonly limits: OwnerLimits
  readonly #pending = new Map<string, number>()
  readonly #placedGpus = new Map<string, number>()

  constructor(limits: OwnerLimits) {
    this.limits = limits
  }

  pendingOf(owner: string): number {
    return this.#pending.get(owner) ?? 0
  }

  /** Counts placed tasks, and pending ones with reserved VRAM. */
  placedGpusOf(owner: string): number {
    return this.#placedGpus.get(owner) ?? 0
  }

  /** GPUs that the owner may still use. */
  roomOf(owner: string): number {
    return (this.limits.maxPlacedGpus ?? Infinity) - this.placedGpusOf(owner)
  }

  countPending({ spec: { owner } }: LiveTask, by: 1 | -1): void {
    if (owner !== null) add(this.#pending, owner, by)
  }

  countPlaced({ spec: { owner, gpuCount } }: LiveTask, by: 1 | -1): void {
    if (owner !== null) add(this.#placedGpus, owner, by * gpuCount)
  }
}

/** Removes the key at zero, so that owners without tasks use no memory. */
function add(counts: Map<string, number>, owner: string, by: number): void {
  const count = (counts.get(owner) ?? 0) + by
  if (count === 0) counts.delete(owner)
  else counts.set(owner, count)
}
