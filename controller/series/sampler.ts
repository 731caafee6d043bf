/**
 * Reads the cluster once a base interval and writes what its counters grew by into the tables. An interval counts for a node that was heard at
 * both ends of it; what is not known is not counted, and leaves `known` at 0.
 */
import type { DurationMs, Instant, Microseconds, Percent } from '../../protocol/units.ts'
import type { Gpu, Node } from '../domain/node.ts'
import { effectiveSchedulableMib, resolveOvercommit } from '../domain/vram.ts'
import type { SwapCounts, Views } from '../engine/views.ts'
import { ZERO_COUNTERS, type Counters } from '../metrics/counters.ts'
import { ADDITIVE, COLUMN, COLUMNS } from './columns.ts'
import { BASE_SLOT_MS, type TableKind } from './retention.ts'
import type { SeriesTable } from './table.ts'

export type Tables = Readonly<Record<TableKind, SeriesTable>>

export const CLUSTER_KEY = 'cluster'

export function gpuKey(nodeId: string, index: number): string {
  return `${nodeId}/${index}`
}

/** A GPU as it was at the end of the interval before. */
interface SeenGpu {
  readonly gpu: Gpu
  readonly index: number | null
  counters: Counters
  swaps: SwapCounts
}

interface SeenNode {
  readonly node: Node
  readonly index: number | null
  isUp: boolean
  swaps: SwapCounts
  gpus: readonly SeenGpu[]
}

/** What the cluster's counters grew by, of the nodes that were heard at both ends, and the time of their GPUs; microseconds. */
export interface Interval {
  readonly counters: Counters
  readonly known: Microseconds
}

export class Sampler {
  readonly #views: Views
  readonly #tables: Tables
  readonly #seen = new Map<string, SeenNode>()
  readonly #groups = new Map<string, { readonly index: number; queueUs: number }>()
  readonly #swapRow = new Float64Array(COLUMNS)
  readonly #nodeRow = new Float64Array(COLUMNS)
  readonly #clusterRow = new Float64Array(COLUMNS)
  #queueUs = 0
  #at: Instant | null = null
  #lastInterval: Interval = { counters: ZERO_COUNTERS, known: 0 }

  constructor(views: Views, tables: Tables) {
    this.#views = views
    this.#tables = tables
  }

  /** When the last reading was taken; null before the first. */
  get readAt(): Instant | null {
    return this.#at
  }

  /** The one that the last reading ended. */
  get lastInterval(): Interval {
    return this.#lastInterval
  }

  /** Takes a reading, unless the base interval of the last one still runs. The first one only says what to count from. */
  take(): void {
    const now = this.#views.now()
    const slotAt = Math.floor(now / BASE_SLOT_MS) * BASE_SLOT_MS
    if (this.#at !== null && slotAt <= this.#at) return
    const pastMs = this.#at === null ? null : now - this.#at
    for (const table of Object.values(this.#tables)) table.clear()
    if (this.#at === null) this.#forgetStrangers()
    this.#read(slotAt - BASE_SLOT_MS, pastMs)
    this.#at = now
    if (pastMs === null) return
    this.#lastInterval = intervalOf(this.#clusterRow)
    for (const table of Object.values(this.#tables)) table.commit(slotAt - BASE_SLOT_MS)
  }

  /** Since the last reading, until now. */
  sinceLast(): Interval {
    const sum = { ...ZERO_COUNTERS }
    let known = 0
    if (this.#at === null) return { counters: sum, known }
    const pastUs = (this.#views.now() - this.#at) * 1000
    for (const { node, isUp, gpus } of this.#seen.values()) {
      if (!isUp || node.status !== 'up') continue
      for (const { gpu, counters } of gpus) {
        const later = this.#views.gpuCounters(gpu)
        sum.busy += later.busy - counters.busy
        sum.served += later.served - counters.served
        sum.swap += later.swap - counters.swap
        sum.compute += later.compute - counters.compute
        known += pastUs
      }
    }
    sum.queue = this.#views.waits().queueUs - this.#queueUs
    sum.demand = sum.served + sum.queue + sum.swap + sum.compute
    return { counters: sum, known }
  }

  /** @param slotAt where the base interval begins that is being written */
  #read(slotAt: Instant, pastMs: DurationMs | null): void {
    const { cluster, group } = this.#tables
    this.#admitGroups(slotAt)
    const clusterRow = this.#clusterRow.fill(0)
    clusterRow[COLUMN.readings] = 1
    let nodesSeen = 0
    for (const node of this.#views.nodes()) {
      nodesSeen += 1
      const row = this.#readNode(node, slotAt, pastMs)
      for (const c of ADDITIVE) clusterRow[c] = at(clusterRow, c) + at(row, c)
      if (at(row, COLUMN.vramReadings) > 0) clusterRow[COLUMN.vramReadings] = 1
      for (const name of node.groups) this.#addToGroup(name, row)
    }
    if (nodesSeen < this.#seen.size) this.#forgetNodes()
    this.#readQueue(clusterRow)
    const index = cluster.admit(CLUSTER_KEY, slotAt)
    if (index !== null) cluster.add(index, clusterRow)
    for (const { index: place } of this.#groups.values()) {
      group.values[COLUMN.readings * group.capacity + place] = 1
      if ((group.values[COLUMN.vramReadings * group.capacity + place] as number) > 1) {
        group.values[COLUMN.vramReadings * group.capacity + place] = 1
      }
    }
  }

  // ── nodes and GPUs ──────────────────────────────────────────────────────────

  #readNode(node: Node, slotAt: Instant, pastMs: DurationMs | null): Float64Array {
    const seen = this.#seenNode(node, slotAt)
    const isUp = node.status === 'up'
    const knownMs = isUp && seen.isUp ? pastMs : null
    seen.isUp = isUp
    const row = this.#nodeRow.fill(0)
    const { percent } = resolveOvercommit(this.#views.config().fields.default_vram_overcommit_percent, node.overcommitOverride)
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
    // The counters of a GPU are whole milliseconds: meters settle at instants.
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
    for (const { residency, demandMib } of gpu.placements) if (residency === 'swapped_out') swappedMib += demandMib
    this.#put(index, COLUMN.swapped, swappedMib, nodeRow)
    if (index === null) return
    const { values, capacity } = this.#tables.gpu
    values[COLUMN.readings * capacity + index] = 1
    values[COLUMN.vramReadings * capacity + index] = 1
    // A task on several GPUs is one swap of its node, which has its own count.
    const swaps = this.#views.gpuSwaps(gpu)
    if (!hasGrown(swaps, seen.swaps)) return
    const row = this.#swapRow.fill(0)
    countSwaps(row, seen.swaps, swaps)
    this.#tables.gpu.add(index, row)
    seen.swaps = { ...swaps }
  }

  /** Of a GPU that has an index, and as a part of its node. */
  #put(index: number | null, column: number, value: number, nodeRow: Float64Array): void {
    nodeRow[column] = (nodeRow[column] as number) + value
    if (index !== null) this.#tables.gpu.values[column * this.#tables.gpu.capacity + index] = value
  }

  /** The same node with the same GPUs as before, or one to count from. */
  #seenNode(node: Node, slotAt: Instant): SeenNode {
    const before = this.#seen.get(node.id)
    if (before !== undefined && before.node === node && hasSameGpus(before, node)) return before
    if (before !== undefined) {
      for (const { gpu } of before.gpus) {
        if (!node.gpus.some(({ index }) => index === gpu.index)) this.#tables.gpu.forget(gpuKey(node.id, gpu.index))
      }
    }
    const seen: SeenNode = {
      node,
      index: this.#tables.node.admit(node.id, slotAt),
      isUp: false,
      swaps: { ...this.#views.nodeSwaps(node) },
      gpus: node.gpus.map((gpu) => ({
        gpu,
        index: this.#tables.gpu.admit(gpuKey(node.id, gpu.index), slotAt),
        counters: this.#views.gpuCounters(gpu),
        swaps: { ...this.#views.gpuSwaps(gpu) },
      })),
    }
    this.#seen.set(node.id, seen)
    return seen
  }

  #forgetNodes(): void {
    for (const [id, { gpus }] of this.#seen) {
      if (this.#views.node(id) !== undefined) continue
      this.#seen.delete(id)
      this.#tables.node.forget(id)
      for (const { gpu } of gpus) this.#tables.gpu.forget(gpuKey(id, gpu.index))
    }
  }

  /** Series that were kept of what went while nobody looked. */
  #forgetStrangers(): void {
    const { group, node, gpu } = this.#tables
    for (const name of group.scopes.keys()) if (this.#views.group(name) === undefined) group.forget(name)
    for (const id of node.scopes.keys()) if (this.#views.node(id) === undefined) node.forget(id)
    const gpus = new Set<string>()
    for (const { id, gpus: own } of this.#views.nodes()) for (const { index } of own) gpus.add(gpuKey(id, index))
    for (const key of gpu.scopes.keys()) if (!gpus.has(key)) gpu.forget(key)
  }

  // ── groups and the queue ────────────────────────────────────────────────────

  #admitGroups(slotAt: Instant): void {
    for (const name of this.#groups.keys()) {
      if (this.#views.group(name) !== undefined) continue
      this.#groups.delete(name)
      this.#tables.group.forget(name)
    }
    for (const { id } of this.#views.groups()) {
      if (this.#groups.has(id)) continue
      const index = this.#tables.group.admit(id, slotAt)
      if (index !== null) this.#groups.set(id, { index, queueUs: this.#views.waits(id).queueUs })
    }
  }

  #addToGroup(name: string, row: Float64Array): void {
    const seen = this.#groups.get(name)
    if (seen !== undefined) this.#tables.group.add(seen.index, row)
  }

  #readQueue(clusterRow: Float64Array): void {
    const isFirst = this.#at === null
    const { tasks, queueUs } = this.#views.waits()
    clusterRow[COLUMN.waiting] = tasks
    if (!isFirst) clusterRow[COLUMN.queue] = (queueUs - this.#queueUs) / 1000
    this.#queueUs = queueUs
    const pending = this.#countPending()
    clusterRow[COLUMN.pending] = pending.all
    for (const [name, seen] of this.#groups) {
      const row = this.#nodeRow.fill(0)
      const wait = this.#views.waits(name)
      row[COLUMN.waiting] = wait.tasks
      row[COLUMN.pending] = pending.byGroup.get(name) ?? 0
      if (!isFirst) row[COLUMN.queue] = (wait.queueUs - seen.queueUs) / 1000
      seen.queueUs = wait.queueUs
      this.#tables.group.add(seen.index, row)
    }
  }

  #countPending(): { readonly all: number; readonly byGroup: ReadonlyMap<string, number> } {
    const byGroup = new Map<string, number>()
    if (this.#groups.size === 0) return { all: this.#views.counts().pending, byGroup }
    let all = 0
    for (const { state, spec } of this.#views.openTasks()) {
      if (state !== 'pending') continue
      all += 1
      for (const group of spec.groups) byGroup.set(group, (byGroup.get(group) ?? 0) + 1)
    }
    return { all, byGroup }
  }
}

function intervalOf(row: Float64Array): Interval {
  const [busy, served, queue, swap, compute] = (['busy', 'served', 'queue', 'swap', 'compute'] as const).map(
    (name) => 1000 * at(row, COLUMN[name]),
  ) as [number, number, number, number, number]
  return { counters: { demand: served + queue + swap + compute, served, queue, swap, compute, busy }, known: 1000 * at(row, COLUMN.known) }
}

function at(row: Float64Array, column: number): number {
  return row[column] as number
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
