/**
 * Nodes by how near they are to admitting a task of one kind that fits nowhere (semantics 4, reservation).
 */
import type { Mib } from '../../../protocol/units.ts'
import { clear } from '../../domain/list-edit.ts'
import type { IndexEntry } from '../../domain/ordered-index.ts'
import { newIndexEntry, OrderedIndex } from '../../domain/ordered-index.ts'
import { isPlaceable, largestEverMib, reservationRoomMib, NOTHING } from '../../scheduler/feasible.ts'
import { byNodeId } from '../../scheduler/score.ts'
import type { RequestKind } from '../../scheduler/shape.ts'
import type { LiveGpu, LiveNode } from '../live.ts'
import type { NodeMember } from './pool-members.ts'
import { sortDescending } from './pool-members.ts'

/** A node as it was when it was taken in last. */
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

  /** What makes it near has changed: it is looked at when somebody asks. */
  mark(member: NodeMember): void {
    if (this.#isUnseen[member.number] === true) return
    this.#isUnseen[member.number] = true
    this.#unseen.push(member)
  }

  /** Those that changed since somebody looked last, in the order in which they did. */
  unseen(): readonly LiveNode[] {
    return this.#unseen.flatMap(({ isMember, node }) => (isMember ? [node] : []))
  }

  /** Takes in what has changed; answers how many nodes changed their place in the order. */
  catchUp(): number {
    let moved = 0
    for (const member of this.#unseen) {
      this.#isUnseen[member.number] = false
      if (member.isMember && this.takeIn(member)) moved += 1
    }
    clear(this.#unseen)
    return moved
  }

  /** Says whether the node's place in the order changed. */
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

  /** Where each node stands. */
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

  /** What each of its best k GPUs has at least; NOTHING when it has fewer. */
  #kthLargest(node: LiveNode, mibOf: (gpu: LiveGpu) => Mib): Mib {
    const mibs = this.#scratchMib
    mibs.length = 0
    for (const gpu of node.gpus) mibs.push(mibOf(gpu))
    if (mibs.length < this.gpuCount) return NOTHING
    sortDescending(mibs)
    return mibs[this.gpuCount - 1] as Mib
  }
}
