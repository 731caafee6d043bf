/** One node in an index for tasks on several GPUs: the sums of its GPUs' scores, and what each of its best k GPUs admits at least. */
import type { Mib } from '../../protocol/units.ts'
import type { IndexEntry } from '../domain/ordered-index.ts'
import { newIndexEntry } from '../domain/ordered-index.ts'
import { NOTHING } from '../scheduler/feasible.ts'
import type { LiveNode } from './live.ts'
import { sortDescending } from './seats.ts'

export class NodeSlot {
  readonly entry: IndexEntry<LiveNode>
  sum1 = 0
  sum2 = 0
  readonly #gpuCount: number
  readonly #key1: number[] = []
  readonly #key2: number[] = []
  readonly #admittedMib: Mib[] = []
  readonly #sortedMib: Mib[] = []

  constructor(node: LiveNode, gpuCount: number) {
    this.entry = newIndexEntry(node)
    this.#gpuCount = gpuCount
  }

  set(gpu: number, key1: number, key2: number, admittedMib: Mib): void {
    this.sum1 += key1 - (this.#key1[gpu] ?? 0)
    this.sum2 += key2 - (this.#key2[gpu] ?? 0)
    this.#key1[gpu] = key1
    this.#key2[gpu] = key2
    this.#admittedMib[gpu] = admittedMib
  }

  kthLargestMib(): Mib {
    const admitted = this.#admittedMib
    const sorted = this.#sortedMib
    if (admitted.length < this.#gpuCount) return NOTHING
    for (let gpu = 0; gpu < admitted.length; gpu++) sorted[gpu] = admitted[gpu] ?? NOTHING
    sortDescending(sorted)
    return sorted[this.#gpuCount - 1] as Mib
  }
}
