/** One node in an index for tasks on several GPUs: the sums of its GPUs' scores, and what each of its best k GPUs admits at least. */
import type { Mib } from '../../protocol/units.ts'
import type { IndexEntry } from '../domain/ordered-index.ts'
import { newIndexEntry, OrderedIndex } from '../domain/ordered-index.ts'
import { NOTHING } from '../scheduler/feasible.ts'
import type { LiveNode } from './live.ts'

export class NodeSlot {
  readonly entry: IndexEntry<LiveNode>
  sum1 = 0
  sum2 = 0
  readonly #gpuCount: number
  readonly #key1: number[] = []
  readonly #key2: number[] = []
  /** The node's GPUs, most admitting first, so that the k-th is k steps away on a node of any size. */
  readonly #byAdmitted = new OrderedIndex<number>((a, b) => a - b)
  readonly #entries: IndexEntry<number>[] = []

  constructor(node: LiveNode, gpuCount: number) {
    this.entry = newIndexEntry(node)
    this.#gpuCount = gpuCount
  }

  set(gpu: number, key1: number, key2: number, admittedMib: Mib): void {
    this.sum1 += key1 - (this.#key1[gpu] ?? 0)
    this.sum2 += key2 - (this.#key2[gpu] ?? 0)
    this.#key1[gpu] = key1
    this.#key2[gpu] = key2
    const entry = (this.#entries[gpu] ??= newIndexEntry(gpu))
    this.#byAdmitted.set(entry, -admittedMib, 0, admittedMib)
  }

  kthLargestMib(): Mib {
    let left = this.#gpuCount
    for (const entry of this.#byAdmitted.entries()) {
      left -= 1
      if (left === 0) return entry.value
    }
    return NOTHING
  }
}
