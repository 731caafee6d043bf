/**
 * How much each owner has pending and placed, where that is limited. Kept along with the books of GPUs;
 * nobody is asked about without a limit.
 */
import type { OwnerLimits } from '../../domain/owner-limits.ts'
import type { LiveTask } from '../live.ts'

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

  /** Of placed tasks, and of pending ones that own bytes. */
  placedGpusOf(owner: string): number {
    return this.#placedGpus.get(owner) ?? 0
  }

  /** GPUs that he may still take. */
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

/** Who has nothing takes no memory. */
function add(counts: Map<string, number>, owner: string, by: number): void {
  const count = (counts.get(owner) ?? 0) + by
  if (count === 0) counts.delete(owner)
  else counts.set(owner, count)
}
