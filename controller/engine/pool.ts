/** A pool: the GPUs that tasks of one set of groups may use, indexed by what they admit. Kept up to date lazily, GPU by GPU. */
import type { Mib } from '../../protocol/units.ts'
import type { Policy } from '../domain/config.ts'
import type { TaskSpec } from '../domain/task.ts'
import { largestEverMib, NOTHING } from '../scheduler/feasible.ts'
import type { PoolView } from '../scheduler/schedule.ts'
import type { When } from '../scheduler/score.ts'
import type { Shape } from '../scheduler/shape.ts'
import { searchDemandMib } from '../scheduler/shape.ts'
import type { Queued } from '../scheduler/queue.ts'
import type { LogReader } from './change-log.ts'
import { ChangeLog } from './change-log.ts'
import { Facet } from './facet.ts'
import { AFTER_SWAP, deriveFigures, NEAR, newFigures, NOW } from './figures.ts'
import type { HoldIndex } from './hold-index.ts'
import type { LiveGpu, LiveNode } from './live.ts'
import type { NearPlace } from './near-index.ts'
import { NearIndex } from './near-index.ts'
import type { NodeSeat, Seat, Unit } from './seats.ts'
import { sortDescending } from './seats.ts'

/** Indexes of nearness, each as far as it was brought up to date. */
export interface Nearness {
  readonly nearVersion: number
  readonly indexes: readonly {
    readonly isExclusive: boolean
    readonly gpuCount: number
    readonly places: readonly NearPlace[]
    /** Oldest first. */
    readonly unseen: readonly LiveNode[]
  }[]
}

export class Pool implements PoolView {
  readonly key: string
  readonly nodes = new Map<LiveNode, NodeSeat>()
  /** Grows whenever a hold, a member or the policy changes: blocked tasks look again whatever GPUs admit. */
  version = 0
  #policy: Policy
  #facets: Facet[] = []
  readonly #facetByKey = new Map<string, Facet>()
  /** The same, by the shapes that asked. */
  readonly #facetsByShape: Record<When, Map<Shape, Facet>> = { now: new Map(), after_swap: new Map() }
  readonly #nearIndexes = new Map<string, NearIndex>()
  /** GPUs whose figures changed, by which of them. */
  readonly #logs: Record<When | 'near', ChangeLog<Seat>> = { now: new ChangeLog(), after_swap: new ChangeLog(), near: new ChangeLog() }
  /** Grows with every change of order among the nodes. */
  #nearVersion = 0
  /** Grows whenever a node joins or leaves, or a reserve or the policy changes. */
  membershipVersion = 0
  #seatCount = 0
  #nodeCount = 0
  readonly #everByShape = new Map<string, Mib>()

  constructor(key: string, policy: Policy) {
    this.key = key
    this.#policy = policy
  }

  addNode(node: LiveNode): void {
    const nodeSeat: NodeSeat = { node, number: this.#nodeCount, unit: { number: this.#nodeCount++, seats: [] }, isMember: true }
    for (const gpu of node.gpus) {
      const unit = { number: this.#seatCount, seats: [] as Seat[] }
      const seat: Seat = { pool: this, gpu, number: this.#seatCount++, unit, node: nodeSeat }
      unit.seats.push(seat)
      nodeSeat.unit.seats.push(seat)
      gpu.seats.push(seat)
      this.markChanged(seat, NOW | AFTER_SWAP | NEAR)
    }
    this.nodes.set(node, nodeSeat)
    this.#everByShape.clear()
    this.version += 1
    this.membershipVersion += 1
  }

  removeNode(node: LiveNode): void {
    const nodeSeat = this.nodes.get(node)
    if (nodeSeat === undefined) return
    nodeSeat.isMember = false
    this.nodes.delete(node)
    for (const { gpu } of nodeSeat.unit.seats) gpu.seats = gpu.seats.filter(({ pool }) => pool !== this)
    this.#everByShape.clear()
    this.version += 1
    this.membershipVersion += 1
    for (const facet of this.#facets) facet.drop(nodeSeat)
    for (const index of this.#nearIndexes.values()) index.drop(nodeSeat)
  }

  /** A reserve changed: what could ever fit is derived again. */
  forgetEver(): void {
    this.#everByShape.clear()
    this.version += 1
    this.membershipVersion += 1
  }

  /** The GPU's figures or holds changed, as `deriveFigures` says. */
  markChanged(seat: Seat, changed: number): void {
    if ((changed & NOW) !== 0) this.#logs.now.push(seat)
    if ((changed & AFTER_SWAP) !== 0) this.#logs.after_swap.push(seat)
    if ((changed & NEAR) !== 0) this.#logs.near.push(seat)
  }

  /** The policy or a node's reserve changed: every figure and every order may have. */
  rebuild(policy: Policy): void {
    this.#policy = policy
    this.#facets = []
    this.#facetByKey.clear()
    this.#facetsByShape.now.clear()
    this.#facetsByShape.after_swap.clear()
    this.#nearIndexes.clear()
    this.#everByShape.clear()
    this.#logs.now.clear()
    this.#logs.after_swap.clear()
    this.#logs.near.clear()
    this.version += 1
    this.membershipVersion += 1
  }

  /** Grows whenever a task of this shape that fitted nowhere might fit now. */
  versionFor(shape: Shape): number {
    const after = shape.kind === 'exclusive' ? 0 : this.#facetFor(shape, 'after_swap').version
    return this.version + this.#facetFor(shape, 'now').version + after
  }

  /** Grows whenever some node comes nearer to, or farther from, taking a task that misses commit room, or may no longer be asked, or may be from now on. */
  get nearVersion(): number {
    for (const index of this.#nearIndexes.values()) this.#catchUpNear(index)
    return this.#nearVersion + this.membershipVersion
  }

  largestMib(shape: Shape, when: When): Mib {
    if (when === 'after_swap' && shape.kind === 'exclusive') return NOTHING
    return this.#facetFor(shape, when).maxMib()
  }

  holds(shape: Shape): HoldIndex {
    return this.#facetFor(shape, shape.kind === 'exclusive' ? 'now' : 'after_swap').held
  }

  heldGpusFor(shape: Shape, when: When, queued: Queued, demandMib: Mib): Iterable<LiveGpu> {
    if (when === 'after_swap' && shape.kind === 'exclusive') return NO_GPUS
    const { held } = this.#facetFor(shape, when)
    return held.isEmpty ? NO_GPUS : firstGpus(held.unitsFor(queued, demandMib))
  }

  *heldNodesFor(shape: Shape, when: When, queued: Queued, demandMib: Mib): Generator<LiveNode> {
    for (const gpu of this.heldGpusFor(shape, when, queued, demandMib)) yield gpu.node
  }

  *gpusFor(shape: Shape, when: When, demandMib: Mib): Generator<LiveGpu> {
    if (when === 'after_swap' && shape.kind === 'exclusive') return
    const index = this.#facetFor(shape, when).gpus
    for (let entry = index.firstAtLeast(demandMib); entry !== null; entry = index.nextAtLeast(entry, demandMib)) yield entry.item
  }

  *nodesFor(shape: Shape, when: When, demandMib: Mib): Generator<LiveNode> {
    if (when === 'after_swap' && shape.kind === 'exclusive') return
    const index = this.#facetFor(shape, when).nodes
    for (let entry = index.firstAtLeast(demandMib); entry !== null; entry = index.nextAtLeast(entry, demandMib)) yield entry.item
  }

  /** Nodes that could ever take the task, nearest first: by what its worst GPU there misses of commit room (an exclusive task: N + S). */
  *nearestNodes(spec: TaskSpec): Generator<LiveNode> {
    const index = this.#nearIndexFor(spec.gpuMode === 'exclusive', spec.gpuCount).nodes
    const demandMib = searchDemandMib(spec)
    for (let entry = index.firstAtLeast(demandMib); entry !== null; entry = index.nextAtLeast(entry, demandMib)) yield entry.item
  }

  largestEverMib(shape: Shape): Mib {
    const key = String(shape.gpuCount)
    let ever = this.#everByShape.get(key)
    if (ever === undefined) {
      ever = NOTHING
      for (const node of this.nodes.keys()) ever = Math.max(ever, largestEverOn(node, shape.gpuCount))
      this.#everByShape.set(key, ever)
    }
    return ever
  }

  /** How near nodes were when somebody looked last, for `memory/`. Nobody looks here: what has changed since stays unseen. */
  get nearness(): Nearness {
    const log = this.#logs.near
    return {
      nearVersion: this.#nearVersion,
      indexes: [...this.#nearIndexes.values()].map((index) => ({
        isExclusive: index.isExclusive,
        gpuCount: index.gpuCount,
        places: [...index.places()],
        unseen: log.unseen(index.reader).flatMap(({ node }) => (node.isMember ? [node.node] : [])),
      })),
    }
  }

  /** The same, taken up again by a pool whose members are known. */
  recallNearness({ nearVersion, indexes }: Nearness): void {
    this.#nearVersion = nearVersion
    const counts = indexes.map(({ unseen }) => unseen.length)
    // All have read one log, each to some point: what one has not seen ends like what another has not.
    const longest = indexes[counts.indexOf(Math.max(...counts))]?.unseen ?? []
    const seats = longest.flatMap((node) => this.nodes.get(node)?.unit.seats[0] ?? [])
    const readers = this.#logs.near.recall(seats, counts)
    indexes.forEach(({ isExclusive, gpuCount, places }, i) => {
      const index = new NearIndex(isExclusive, gpuCount, readers[i] as LogReader)
      this.#nearIndexes.set(`${String(isExclusive)} ${gpuCount}`, index)
      for (const [node, minusRoomMib, everMib] of places) {
        const seat = this.nodes.get(node)
        if (seat !== undefined) index.recall(seat, minusRoomMib, everMib)
      }
    })
  }

  #facetFor(shape: Shape, when: When): Facet {
    const known = this.#facetsByShape[when].get(shape)
    if (known !== undefined) {
      if (this.#logs[when].isNews(known.reader)) this.#catchUp(known)
      return known
    }
    const key = `${when} ${shape.kind} ${shape.gpuCount} ${when === 'now' ? '' : String(shape.isP0)}`
    const facet = this.#facetByKey.get(key) ?? this.#newFacet(key, shape, when)
    this.#facetsByShape[when].set(shape, facet)
    this.#catchUp(facet)
    return facet
  }

  #catchUp(facet: Facet): void {
    for (const seat of this.#logs[facet.when].news(facet.reader)) {
      if (seat.node.isMember) facet.takeIn(seat, seat.gpu.figures)
    }
  }

  #catchUpNear(index: NearIndex): void {
    const log = this.#logs.near
    if (!log.isNews(index.reader)) return
    for (const { node } of log.news(index.reader)) if (node.isMember && index.takeIn(node)) this.#nearVersion += 1
  }

  /** Figures of GPUs that changed while nobody was pending are not derived yet. */
  #newFacet(key: string, shape: Shape, when: When): Facet {
    const facet = new Facet(shape, when, this.#logs[when].addReader())
    this.#facetByKey.set(key, facet)
    this.#facets.push(facet)
    const fresh = newFigures()
    for (const { unit } of this.nodes.values()) {
      for (const seat of unit.seats) {
        deriveFigures(fresh, seat.gpu, this.#policy)
        facet.takeIn(seat, fresh)
      }
    }
    return facet
  }

  #nearIndexFor(isExclusive: boolean, gpuCount: number): NearIndex {
    const key = `${String(isExclusive)} ${gpuCount}`
    let index = this.#nearIndexes.get(key)
    if (index === undefined) {
      index = new NearIndex(isExclusive, gpuCount, this.#logs.near.addReader())
      this.#nearIndexes.set(key, index)
      for (const node of this.nodes.values()) index.takeIn(node)
    }
    this.#catchUpNear(index)
    return index
  }
}

const NO_GPUS: readonly LiveGpu[] = []

function* firstGpus(units: Iterable<Unit>): Generator<LiveGpu> {
  for (const unit of units) yield (unit.seats[0] as Seat).gpu
}

/** What each of the node's best k GPUs could ever take at least; NOTHING when it has fewer. */
function largestEverOn(node: LiveNode, k: number): Mib {
  if (node.gpus.length < k) return NOTHING
  const mibs = node.gpus.map(largestEverMib)
  sortDescending(mibs)
  return mibs[k - 1] as Mib
}
