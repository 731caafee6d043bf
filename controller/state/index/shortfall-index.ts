/** Nodes ordered by the shortfall of tasks of one kind that fit nowhere (semantics 4, reservation). */
import type { Mib } from '../../../protocol/units.ts'
import { clear } from '../../structures/list-edit.ts'
import type { IndexEntry } from '../../structures/ordered-index.ts'
import { newIndexEntry, OrderedIndex } from '../../structures/ordered-index.ts'
import { isPlaceable, largestEverMib, reservationRoomMib, NOTHING } from '../../policy/placement/feasible.ts'
import { byNodeId } from '../../policy/placement/score.ts'
import type { RequestKind } from '../../policy/placement/shape.ts'
import type { LiveGpu, LiveNode } from '../facts.ts'
import type { NodeMember } from './pool-members.ts'
import { sortDescending } from './pool-members.ts'

/** The state of a node at its last update. */
export type ShortfallPlace = readonly [node: LiveNode, minusRoomMib: Mib, everMib: Mib]

export class ShortfallIndex {
  readonly nodes = new OrderedIndex<LiveNode>(byNodeId)
  readonly kind: RequestKind
  readonly gpuCount: number
  readonly #unseen: NodeMember[] = []
  readonly #isUnseen: boolean[] = []
  readonly #entries: (IndexEntry<LiveNode> | undefined)[] = []
  readonly #scratchMib: Mib[] = []

  constructor(kind: RequestKind, gpuCount: number) {
    this.kind = kind
    this.gpuCount = gpuCount
  }

  /** The figures of the node changed; they are processed lazily. */
  mark(member: NodeMember): void {
    if (this.#isUnseen[member.number] === true) return
    this.#isUnseen[member.number] = true
    this.#unseen.push(member)
  }

  /** Nodes that changed since the last update, in order of change. */
  unseen(): readonly LiveNode[] {
    return this.#unseen.flatMap(({ isMember, node }) => (isMember ? [node] : []))
  }

  /** Processes changed nodes; returns how many changed their position. */
  catchUp(): number {
    let moved = 0
    for (const member of this.#unseen) {
      this.#isUnseen[member.number] = false
      if (member.isMember && this.takeIn(member)) moved += 1
    }
    clear(this.#unseen)
    return moved
  }

  /** Returns true if the position of the node changed. */
  takeIn({ node, number }: NodeMember): boolean {
    const ever = isPlaceable(node) ? this.#kthLargest(node, largestEverMib) : NOTHING
    const room = this.#kthLargest(node, (gpu) => reservationRoomMib(gpu, this.kind))
    let entry = this.#entries[number]
    if (entry === undefined) {
      entry = newIndexEntry(node)
      this.#entries[number] = entry
    }
    const isMoved = entry.chunk === null || entry.key1 !== -room || entry.value !== ever
    if (isMoved) this.nodes.set(entry, -room, 0, ever)
    return isMoved
  }

  /** The state of each node, in order. */
  *places(): Generator<ShortfallPlace> {
    for (const { item, key1, value } of this.nodes.entries()) yield [item, key1, value]
  }

  restore({ node, number }: NodeMember, minusRoomMib: Mib, everMib: Mib): void {
    const entry = newIndexEntry(node)
    this.#entries[number] = entry
    this.nodes.set(entry, minusRoomMib, 0, everMib)
  }

  drop({ number }: NodeMember): void {
    const entry = this.#entries[number]
    if (entry !== undefined) this.nodes.remove(entry)
    this.#entries[number] = undefined
  }

  /** Returns the value that each of its best k GPUs has at least; NOTHING if it has fewer. */
  #kthLargest(node: LiveNode, mibOf: (gpu: LiveGpu) => Mib): Mib {
    const mibs = this.#scratchMib
    mibs.length = 0
    for (const gpu of node.gpus) mibs.push(mibOf(gpu))
    if (mibs.length < this.gpuCount) return NOTHING
    sortDescending(mibs)
    return mibs[this.gpuCount - 1] as Mib
  }
}
