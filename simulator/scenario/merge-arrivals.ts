import type { ArrivalSource } from './arrivals.ts'
import type { SimTask } from './scenario.ts'

/** A source's next task, and the source's position among the sources. */
interface Head {
  readonly task: SimTask
  readonly position: number
}

/**
 * Merges several sources: earlier arrival first, then the earlier source in the given order, then the
 * source's own order.
 */
export function mergeArrivals(sources: readonly ArrivalSource[]): ArrivalSource {
  return sources.length === 1 ? sources[0]! : new MergedArrivals(sources)
}

/** Keeps the head of each source in a binary heap: O(log sources) per task. */
class MergedArrivals implements ArrivalSource {
  readonly #sources: readonly ArrivalSource[]
  readonly #heap: Head[] = []
  /** Sources that must be filled before they have a head. */
  #dry: number[] = []

  constructor(sources: readonly ArrivalSource[]) {
    this.#sources = sources
    for (const position of sources.keys()) this.#pull(position)
  }

  get needsFill(): boolean {
    return this.#dry.length > 0
  }

  async fill(): Promise<void> {
    const dry = this.#dry
    for (const position of dry) await this.#sources[position]!.fill()
    this.#dry = []
    for (const position of dry) this.#pull(position)
  }

  next(): SimTask | null {
    if (this.#dry.length > 0) throw new Error('arrivals have to be filled before the next one is taken')
    const head = this.#heap[0]
    if (head === undefined) return null
    this.#pull(head.position, true)
    return head.task
  }

  async close(): Promise<void> {
    for (const source of this.#sources) await source.close()
  }

  /** Takes the next head of the source; with `replacesTop` it replaces the least head. */
  #pull(position: number, replacesTop = false): void {
    const source = this.#sources[position]!
    if (source.needsFill) this.#dry.push(position)
    const task = source.needsFill ? null : source.next()
    if (task === null) {
      if (replacesTop) this.#removeTop()
    } else if (replacesTop) this.#siftDown({ task, position })
    else this.#siftUp({ task, position })
  }

  #removeTop(): void {
    const last = this.#heap.pop()!
    if (this.#heap.length > 0) this.#siftDown(last)
  }

  #siftUp(head: Head): void {
    const heap = this.#heap
    let at = heap.push(head) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!comesBefore(head, heap[parent]!)) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = head
  }

  /** From the top. */
  #siftDown(head: Head): void {
    const heap = this.#heap
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && comesBefore(heap[child + 1]!, heap[child]!)) child++
      if (!comesBefore(heap[child]!, head)) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = head
  }
}

function comesBefore(a: Head, b: Head): boolean {
  return a.task.at < b.task.at || (a.task.at === b.task.at && a.position < b.position)
}
