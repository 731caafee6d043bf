/** One index of a pool: its GPUs (one GPU asked for) or nodes (several) in the order of preference, by what they admit to one kind of request. */
import type { Mib } from '../../protocol/units.ts'
import type { IndexEntry } from '../domain/ordered-index.ts'
import { newIndexEntry, OrderedIndex } from '../domain/ordered-index.ts'
import { NOTHING } from '../scheduler/feasible.ts'
import type { When } from '../scheduler/score.ts'
import { byGpuId, byNodeId } from '../scheduler/score.ts'
import type { Shape } from '../scheduler/shape.ts'
import type { LogReader } from './change-log.ts'
import type { Figures } from './figures.ts'
import { admitsPlace } from './figures.ts'
import { HoldIndex } from './hold-index.ts'
import type { LiveGpu, LiveNode } from './live.ts'
import { NodeSlot } from './node-slot.ts'
import type { NodeSeat, Seat } from './seats.ts'

export class Facet {
  readonly when: When
  readonly gpuCount: number
  readonly gpus = new OrderedIndex<LiveGpu>(byGpuId)
  readonly nodes = new OrderedIndex<LiveNode>(byNodeId)
  readonly held: HoldIndex
  readonly reader: LogReader
  /** Grows whenever some GPU admits more than before. */
  version = 0
  readonly #place: number
  readonly #gpuEntries: (IndexEntry<LiveGpu> | undefined)[] = []
  readonly #nodeSlots: (NodeSlot | undefined)[] = []
  /** What each GPU admits, its holds left aside. */
  readonly #wholeMib: (Mib | undefined)[] = []

  constructor(shape: Shape, when: When, reader: LogReader) {
    this.when = when
    this.gpuCount = shape.gpuCount
    this.reader = reader
    this.#place = admitsPlace(when, shape.kind, shape.isP0)
    this.held = new HoldIndex(shape.gpuCount, (seat) => this.#wholeMib[seat.number] ?? NOTHING)
  }

  maxMib(): Mib {
    return this.gpuCount === 1 ? this.gpus.maxValue() : this.nodes.maxValue()
  }

  /** The GPU's figures or holds changed. */
  takeIn(seat: Seat, figures: Figures): void {
    const { gpu, number } = seat
    const whole = figures.admitsMib[this.#place] as Mib
    const before = this.#wholeMib[number] ?? NOTHING
    if (whole !== before) this.#wholeMib[number] = whole
    this.held.touch(this.gpuCount === 1 ? seat.unit : seat.node.unit)
    const open = gpu.holds.length > 0 ? NOTHING : whole
    const isMore = this.gpuCount === 1 ? this.#indexGpu(seat, figures, open) : this.#indexNode(seat, figures, open)
    if (isMore || whole > before) this.version += 1
  }

  drop({ node, number, unit }: NodeSeat): void {
    this.held.drop(unit)
    for (const seat of unit.seats) {
      this.held.drop(seat.unit)
      const entry = this.#gpuEntries[seat.number]
      if (entry !== undefined) this.gpus.remove(entry)
      this.#gpuEntries[seat.number] = undefined
    }
    const slot = this.#nodeSlots[number]
    if (slot?.entry.item === node) this.nodes.remove(slot.entry)
    this.#nodeSlots[number] = undefined
  }

  /** Says whether it admits more than it did. */
  #indexGpu({ gpu, number }: Seat, { key1, key2 }: Figures, open: Mib): boolean {
    let entry = this.#gpuEntries[number]
    if (entry === undefined) {
      entry = newIndexEntry(gpu)
      this.#gpuEntries[number] = entry
    }
    const isMore = open > entry.value
    this.gpus.set(entry, key1[this.when], key2[this.when], open)
    return isMore
  }

  #indexNode({ gpu, node }: Seat, { key1, key2 }: Figures, open: Mib): boolean {
    let slot = this.#nodeSlots[node.number]
    if (slot === undefined) {
      slot = new NodeSlot(node.node, this.gpuCount)
      this.#nodeSlots[node.number] = slot
    }
    slot.set(gpu.index, key1[this.when], key2[this.when], open)
    const kth = slot.kthLargestMib()
    const isMore = kth > slot.entry.value
    this.nodes.set(slot.entry, slot.sum1, slot.sum2, kth)
    return isMore
  }
}
