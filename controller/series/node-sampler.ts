/**
 * Reads nodes and their GPUs, and writes the growth of their counters since the last reading. An interval
 * counts for a node heard at both ends of it; otherwise nothing is counted, and `known` stays 0.
 */
import type { DurationMs, Instant, Percent } from '../../protocol/units.ts'
import { movableMib } from '../model/placement.ts'
import type { Gpu, Node } from '../model/placement.ts'
import { effectiveSchedulableMib, resolveOvercommit } from '../model/vram.ts'
import type { SwapCounts, Views } from '../query/views.ts'
import type { Counters } from '../metrics/counters.ts'
import { COLUMN, COLUMNS } from './columns.ts'
import { addTo, type Interval, newInterval } from './interval.ts'
import type { TableKind } from './retention.ts'
import type { SeriesTable } from './table.ts'
import type { WakeCounts } from './wake-counts.ts'

export type Tables = Readonly<Record<TableKind, SeriesTable>>

export function gpuKey(nodeId: string, index: number): string {
  return `${nodeId}/${index}`
}

/** A GPU at the end of the previous interval. */
interface SeenGpu {
  readonly gpu: Gpu
  readonly index: number | null
  counters: Counters
  swaps: SwapCounts
  copyMs: DurationMs
}

interface SeenNode {
  readonly node: Node
  readonly index: number | null
  at: Instant
  isUp: boolean
  swaps: SwapCounts
  readonly gpus: readonly SeenGpu[]
}

export class NodeSampler {
  readonly #views: Views
  readonly #tables: Tables
  readonly #wakes: WakeCounts
  readonly #seen = new Map<string, SeenNode>()
  readonly #swapRow = new Float64Array(COLUMNS)
  readonly #nodeRow = new Float64Array(COLUMNS)

  constructor(views: Views, tables: Tables, wakes: WakeCounts) {
    this.#views = views
    this.#wakes = wakes
    this.#tables = tables
  }

  /** Number of nodes with a previous reading. */
  get count(): number {
    return this.#seen.size
  }

  /** Growth since the last reading, over all nodes heard then and now. */
  sinceRead(): Interval {
    const sum = newInterval()
    const now = this.#views.now()
    for (const { node, at, isUp, gpus } of this.#seen.values()) {
      if (!isUp || node.status !== 'up') continue
      for (const { gpu, counters } of gpus) addTo(sum, this.#views.gpuCounters(gpu), counters, now - at)
    }
    return sum
  }

  /**
   * @param slotAt begin of the base interval that is being written
   * @returns growth of the node's columns; valid until the next call
   */
  read(node: Node, slotAt: Instant): Float64Array {
    const now = this.#views.now()
    const seen = this.#seenNode(node, slotAt)
    const isUp = node.status === 'up'
    const knownMs = isUp && seen.isUp ? now - seen.at : null
    seen.isUp = isUp
    seen.at = now
    const row = this.#nodeRow.fill(0)
    const { percent } = resolveOvercommit(
      this.#views.config().fields.default_vram_overcommit_percent,
      node.overcommitOverride,
    )
    for (const gpu of seen.gpus) {
      this.#readCounters(gpu, knownMs, row)
      if (isUp) this.#readGpu(gpu, percent, row)
    }
    if (isUp) {
      const swaps = this.#views.nodeSwaps(node)
      if (hasGrown(swaps, seen.swaps)) {
        countSwaps(row, seen.swaps, swaps)
        seen.swaps = { ...swaps }
      }
      this.#wakes.read(node.id, row)
      row[COLUMN.entries] = node.queue.length
      row[COLUMN.readings] = 1
      row[COLUMN.vramReadings] = seen.gpus.length > 0 ? 1 : 0
    }
    if (seen.index !== null) this.#tables.node.add(seen.index, row)
    return row
  }

  #readCounters(seen: SeenGpu, knownMs: DurationMs | null, nodeRow: Float64Array): void {
    const { gpu, index, counters: before } = seen
    const counters = this.#views.gpuCounters(gpu)
    seen.counters = counters
    if (knownMs === null) return
    // Counters of a GPU are whole milliseconds: meters settle at instants.
    this.#put(index, COLUMN.busy, (counters.busy - before.busy) / 1000, nodeRow)
    this.#put(index, COLUMN.known, knownMs, nodeRow)
    this.#put(index, COLUMN.served, (counters.served - before.served) / 1000, nodeRow)
    this.#put(index, COLUMN.swap, (counters.swap - before.swap) / 1000, nodeRow)
    this.#put(index, COLUMN.compute, (counters.compute - before.compute) / 1000, nodeRow)
  }

  #readGpu(seen: SeenGpu, percent: Percent, nodeRow: Float64Array): void {
    const { gpu, index } = seen
    this.#put(index, COLUMN.physical, gpu.physicalMib, nodeRow)
    this.#put(index, COLUMN.resident, gpu.noswapResidentMib + gpu.swappableResidentMib, nodeRow)
    this.#put(index, COLUMN.foreign, gpu.foreignMib, nodeRow)
    this.#put(index, COLUMN.committed, gpu.noswapMib + gpu.swappableMib, nodeRow)
    this.#put(index, COLUMN.effective, effectiveSchedulableMib(gpu.physicalMib, percent), nodeRow)
    this.#put(index, COLUMN.limit, gpu.limitMib, nodeRow)
    let swappedMib = 0
    for (const placement of gpu.placements)
      if (placement.residency === 'swapped_out') swappedMib += movableMib(placement)
    this.#put(index, COLUMN.swapped, swappedMib, nodeRow)
    const copyMs = this.#views.gpuCopyMs(gpu)
    this.#put(index, COLUMN.copy, copyMs - seen.copyMs, nodeRow)
    seen.copyMs = copyMs
    if (index === null) return
    const { values, capacity } = this.#tables.gpu
    values[COLUMN.readings * capacity + index] = 1
    values[COLUMN.vramReadings * capacity + index] = 1
    // A task on several GPUs is one swap of its node, which has its own counter.
    const swaps = this.#views.gpuSwaps(gpu)
    if (!hasGrown(swaps, seen.swaps)) return
    const row = this.#swapRow.fill(0)
    countSwaps(row, seen.swaps, swaps)
    this.#tables.gpu.add(index, row)
    seen.swaps = { ...swaps }
  }

  /** For a GPU with an index, and as a part of its node. */
  #put(index: number | null, column: number, value: number, nodeRow: Float64Array): void {
    nodeRow[column] = (nodeRow[column] as number) + value
    if (index !== null) this.#tables.gpu.values[column * this.#tables.gpu.capacity + index] = value
  }

  /** Returns the entry of the same node with the same GPUs, or a new one. */
  #seenNode(node: Node, slotAt: Instant): SeenNode {
    const before = this.#seen.get(node.id)
    if (before !== undefined && before.node === node && hasSameGpus(before, node)) return before
    if (before !== undefined) {
      for (const { gpu } of before.gpus) {
        if (!node.gpus.some(({ index }) => index === gpu.index))
          this.#tables.gpu.forget(gpuKey(node.id, gpu.index))
      }
    }
    const seen: SeenNode = {
      node,
      index: this.#tables.node.admit(node.id, slotAt),
      at: this.#views.now(),
      isUp: false,
      swaps: { ...this.#views.nodeSwaps(node) },
      gpus: node.gpus.map((gpu) => ({
        gpu,
        index: this.#tables.gpu.admit(gpuKey(node.id, gpu.index), slotAt),
        counters: this.#views.gpuCounters(gpu),
        swaps: { ...this.#views.gpuSwaps(gpu) },
        copyMs: this.#views.gpuCopyMs(gpu),
      })),
    }
    this.#seen.set(node.id, seen)
    return seen
  }

  /** Removes nodes that no longer exist. */
  forgetGone(): void {
    for (const [id, { gpus }] of this.#seen) {
      if (this.#views.node(id) !== undefined) continue
      this.#seen.delete(id)
      this.#tables.node.forget(id)
      for (const { gpu } of gpus) this.#tables.gpu.forget(gpuKey(id, gpu.index))
    }
  }
}

function hasSameGpus(seen: SeenNode, node: Node): boolean {
  return seen.gpus.length === node.gpus.length && seen.gpus.every(({ gpu }, i) => gpu === node.gpus[i])
}

function hasGrown(now: SwapCounts, before: SwapCounts): boolean {
  return now.swapOuts !== before.swapOuts || now.swapIns !== before.swapIns
}

function countSwaps(row: Float64Array, before: SwapCounts, now: SwapCounts): void {
  row[COLUMN.swapOuts] = now.swapOuts - before.swapOuts
  row[COLUMN.swapIns] = now.swapIns - before.swapIns
  row[COLUMN.outMib] = now.swappedOutMib - before.swappedOutMib
  row[COLUMN.inMib] = now.swappedInMib - before.swappedInMib
}
