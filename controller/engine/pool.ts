/** A pool: the GPUs that tasks of one set of groups may use, indexed by what they admit. Kept up to date lazily, GPU by GPU. */
import type { Mib } from '../../protocol/units.ts'
import type { Policy } from '../domain/config.ts'
import type { IndexEntry } from '../domain/ordered-index.ts'
import { newIndexEntry, OrderedIndex } from '../domain/ordered-index.ts'
import type { TaskSpec } from '../domain/task.ts'
import { commitRoomMib, isPlaceable, largestAfterSwapMib, largestEverMib, largestNowMib, NOTHING } from '../scheduler/feasible.ts'
import type { PoolView } from '../scheduler/schedule.ts'
import type { When } from '../scheduler/score.ts'
import { byGpuId, byNodeId, scoreOf } from '../scheduler/score.ts'
import type { RequestKind, Shape } from '../scheduler/shape.ts'
import { searchDemandMib } from '../scheduler/shape.ts'
import type { LiveGpu, LiveNode } from './live.ts'
import type { Unit } from './hold-index.ts'
import { HoldIndex } from './hold-index.ts'
import { NodeSlot } from './node-slot.ts'
import type { Queued } from '../scheduler/queue.ts'

/** What one index answers: GPUs (one GPU asked for) or nodes (several), by kind of request. */
interface Facet {
  readonly kind: RequestKind
  readonly when: When
  readonly isP0: boolean
  readonly gpuCount: number
  readonly gpus: OrderedIndex<LiveGpu>
  readonly gpuEntries: Map<LiveGpu, IndexEntry<LiveGpu>>
  /** What each GPU admits, its holds left aside. */
  readonly wholeMib: Map<LiveGpu, Mib>
  readonly nodes: OrderedIndex<LiveNode>
  readonly nodeSlots: Map<LiveNode, NodeSlot>
  readonly held: HoldIndex
  /** How much of the pool's log of changed GPUs it has taken in. */
  seen: number
  /** Grows whenever some GPU admits more than before. */
  version: number
}

/** From so many changes on it pays to sort out repeats first. */
const MANY_CHANGES = 64

/** Past this the log is shortened; far more than GPUs change between two looks at an index. */
const MAX_LOG = 65_536

/** Nodes by how near they come to taking a task that misses commit room everywhere (semantics 4, reservation). */
interface NearFacet {
  readonly isExclusive: boolean
  readonly gpuCount: number
  readonly nodes: OrderedIndex<LiveNode>
  readonly nodeEntries: Map<LiveNode, IndexEntry<LiveNode>>
  seen: number
}

export class Pool implements PoolView {
  readonly key: string
  readonly nodes = new Set<LiveNode>()
  /** The unit of a single GPU, one object each. */
  readonly #units = new Map<LiveGpu, Unit>()
  /** Grows whenever a hold, a member or the policy changes: blocked tasks look again whatever GPUs admit. */
  version = 0
  /** Grows whenever a node joins or leaves, or a reserve changes. */
  membershipVersion = 0
  #policy: Policy
  #facets: Facet[] = []
  readonly #facetByKey = new Map<string, Facet>()
  /** The same, by the shapes that asked. */
  readonly #facetsByShape: Record<When, Map<Shape, Facet>> = { now: new Map(), after_swap: new Map() }
  readonly #nearFacets = new Map<string, NearFacet>()
  /** GPUs that changed, in order; each index takes in what it has not seen when it is asked. */
  #log: LiveGpu[] = []
  #nearVersion = 0
  readonly #everByShape = new Map<string, Mib>()

  constructor(key: string, policy: Policy) {
    this.key = key
    this.#policy = policy
  }

  addNode(node: LiveNode): void {
    this.nodes.add(node)
    this.#everByShape.clear()
    this.version += 1
    this.membershipVersion += 1
    for (const gpu of node.gpus) this.markStale(gpu)
  }

  removeNode(node: LiveNode): void {
    this.nodes.delete(node)
    this.#everByShape.clear()
    this.version += 1
    this.membershipVersion += 1
    for (const facet of this.#facets) {
      facet.held.drop(node.gpus)
      for (const gpu of node.gpus) facet.held.drop(this.#unitOf(facet, gpu))
      for (const gpu of node.gpus) dropEntry(facet.gpus, facet.gpuEntries, gpu)
      const slot = facet.nodeSlots.get(node)
      if (slot !== undefined) facet.nodes.remove(slot.entry)
      facet.nodeSlots.delete(node)
    }
    for (const facet of this.#nearFacets.values()) dropEntry(facet.nodes, facet.nodeEntries, node)
  }

  /** A reserve changed: what could ever fit is derived again. */
  forgetEver(): void {
    this.#everByShape.clear()
    this.version += 1
    this.membershipVersion += 1
  }

  /** The GPU's figures, holds or node status changed. */
  markStale(gpu: LiveGpu): void {
    this.#log.push(gpu)
    if (this.#log.length > MAX_LOG) this.#shortenLog()
  }

  /** The policy or a node's reserve changed: every figure and every order may have. */
  rebuild(policy: Policy): void {
    this.#policy = policy
    this.#facets = []
    this.#facetByKey.clear()
    this.#facetsByShape.now.clear()
    this.#facetsByShape.after_swap.clear()
    this.#nearFacets.clear()
    this.#everByShape.clear()
    this.#log = []
    this.version += 1
    this.membershipVersion += 1
  }

  /** Grows whenever a task of this shape that fitted nowhere might fit now. */
  versionFor(shape: Shape): number {
    const after = shape.kind === 'exclusive' ? 0 : this.#facetFor(shape, 'after_swap').version
    return this.version + this.#facetFor(shape, 'now').version + after
  }

  /** Grows whenever some node comes nearer to, or farther from, taking a task that misses commit room. */
  get nearVersion(): number {
    for (const facet of this.#nearFacets.values()) this.#catchUpNear(facet)
    return this.#nearVersion
  }

  largestMib(shape: Shape, when: When): Mib {
    if (when === 'after_swap' && shape.kind === 'exclusive') return NOTHING
    const facet = this.#facetFor(shape, when)
    return facet.gpuCount === 1 ? facet.gpus.maxValue() : facet.nodes.maxValue()
  }

  holds(shape: Shape): HoldIndex {
    return this.#facetFor(shape, shape.kind === 'exclusive' ? 'now' : 'after_swap').held
  }

  *heldGpusFor(shape: Shape, when: When, queued: Queued, demandMib: Mib): Generator<LiveGpu> {
    if (when === 'after_swap' && shape.kind === 'exclusive') return
    const { held } = this.#facetFor(shape, when)
    if (!held.isEmpty) for (const unit of held.unitsFor(queued, demandMib)) yield unit[0] as LiveGpu
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
    const index = this.#nearFacetFor(spec.gpuMode === 'exclusive', spec.gpuCount).nodes
    const demandMib = searchDemandMib(spec)
    for (let entry = index.firstAtLeast(demandMib); entry !== null; entry = index.nextAtLeast(entry, demandMib)) yield entry.item
  }

  largestEverMib(shape: Shape): Mib {
    const key = String(shape.gpuCount)
    let ever = this.#everByShape.get(key)
    if (ever === undefined) {
      ever = NOTHING
      for (const node of this.nodes) ever = Math.max(ever, kthLargest(node.gpus.map(largestEverMib), shape.gpuCount))
      this.#everByShape.set(key, ever)
    }
    return ever
  }

  #facetFor(shape: Shape, when: When): Facet {
    const known = this.#facetsByShape[when].get(shape)
    if (known !== undefined) {
      if (known.seen < this.#log.length) this.#catchUp(known)
      return known
    }
    const key = `${when} ${shape.kind} ${shape.gpuCount} ${when === 'now' ? '' : String(shape.isP0)}`
    const facet = this.#facetByKey.get(key) ?? this.#newFacet(key, shape, when)
    this.#facetsByShape[when].set(shape, facet)
    this.#catchUp(facet)
    return facet
  }

  #catchUp(facet: Facet): void {
    const log = this.#log
    // An index that is asked rarely finds the same GPUs many times: each is looked at once, as it is now.
    const changed = log.length - facet.seen > MANY_CHANGES ? new Set(log.slice(facet.seen)) : null
    if (changed !== null) for (const gpu of changed) this.#takeIn(facet, gpu)
    else for (let i = facet.seen; i < log.length; i++) this.#takeIn(facet, log[i] as LiveGpu)
    facet.seen = log.length
  }

  #takeIn(facet: Facet, gpu: LiveGpu): void {
    if (this.nodes.has(gpu.node)) this.#index(facet, gpu)
  }

  #catchUpNear(facet: NearFacet): void {
    const log = this.#log
    for (; facet.seen < log.length; facet.seen++) {
      const { node } = log[facet.seen] as LiveGpu
      if (this.nodes.has(node) && indexNear(facet, node)) this.#nearVersion += 1
    }
  }

  /** Indexes that nobody asks may lag: they take in each changed GPU once, and the log begins anew. */
  #shortenLog(): void {
    const log = this.#log
    const behind = Math.min(
      ...this.#facets.map((facet) => facet.seen),
      ...[...this.#nearFacets.values()].map((facet) => facet.seen),
      log.length,
    )
    this.#log = [...new Set(log.slice(behind))]
    for (const facet of [...this.#facets, ...this.#nearFacets.values()]) facet.seen = facet.seen === log.length ? this.#log.length : 0
  }

  #newFacet(key: string, shape: Shape, when: When): Facet {
    const wholeMib = new Map<LiveGpu, Mib>()
    const facet: Facet = {
      kind: shape.kind,
      when,
      isP0: shape.isP0,
      gpuCount: shape.gpuCount,
      gpus: new OrderedIndex<LiveGpu>(byGpuId),
      gpuEntries: new Map(),
      wholeMib,
      nodes: new OrderedIndex<LiveNode>(byNodeId),
      nodeSlots: new Map(),
      held: new HoldIndex(shape.gpuCount, (gpu) => wholeMib.get(gpu) ?? NOTHING),
      seen: this.#log.length,
      version: 0,
    }
    this.#facetByKey.set(key, facet)
    this.#facets.push(facet)
    for (const node of this.nodes) for (const gpu of node.gpus) this.#index(facet, gpu)
    return facet
  }

  #nearFacetFor(isExclusive: boolean, gpuCount: number): NearFacet {
    const key = `${String(isExclusive)} ${gpuCount}`
    let facet = this.#nearFacets.get(key)
    if (facet === undefined) {
      facet = { isExclusive, gpuCount, nodes: new OrderedIndex<LiveNode>(byNodeId), nodeEntries: new Map(), seen: this.#log.length }
      this.#nearFacets.set(key, facet)
      for (const node of this.nodes) indexNear(facet, node)
    }
    this.#catchUpNear(facet)
    return facet
  }

  #index(facet: Facet, gpu: LiveGpu): void {
    const { key1, key2 } = scoreOf(gpu, facet.when, this.#policy.strategy)
    const whole = this.#admits(facet, gpu)
    const before = facet.wholeMib.get(gpu) ?? NOTHING
    if (whole !== before) facet.wholeMib.set(gpu, whole)
    const isBetter = whole > before
    facet.held.touch(this.#unitOf(facet, gpu))
    const open = gpu.holds.length > 0 ? NOTHING : whole
    if (facet.gpuCount === 1) {
      let entry = facet.gpuEntries.get(gpu)
      if (entry === undefined) {
        entry = newIndexEntry(gpu)
        facet.gpuEntries.set(gpu, entry)
      }
      if (isBetter || open > entry.value) facet.version += 1
      facet.gpus.set(entry, key1, key2, open)
      return
    }
    let slot = facet.nodeSlots.get(gpu.node)
    if (slot === undefined) {
      slot = new NodeSlot(gpu.node, facet.gpuCount)
      facet.nodeSlots.set(gpu.node, slot)
    }
    slot.set(gpu.index, key1, key2, open)
    const kth = slot.kthLargestMib()
    if (isBetter || kth > slot.entry.value) facet.version += 1
    facet.nodes.set(slot.entry, slot.sum1, slot.sum2, kth)
  }

  #unitOf(facet: Facet, gpu: LiveGpu): Unit {
    if (facet.gpuCount > 1) return gpu.node.gpus
    let unit = this.#units.get(gpu)
    if (unit === undefined) {
      unit = [gpu]
      this.#units.set(gpu, unit)
    }
    return unit
  }

  #admits(facet: Facet, gpu: LiveGpu): Mib {
    const now = largestNowMib(gpu, facet.kind, this.#policy.maxTasksPerGpu)
    if (facet.when === 'now') return now
    return Math.max(now, largestAfterSwapMib(gpu, facet.kind, facet.isP0, this.#policy.maxTasksPerGpu))
  }
}

/** Says whether the node's place in the order changed. */
function indexNear(facet: NearFacet, node: LiveNode): boolean {
  const ever = isPlaceable(node) ? kthLargest(node.gpus.map(largestEverMib), facet.gpuCount) : NOTHING
  const room = kthLargest(
    node.gpus.map((gpu) => (facet.isExclusive ? -(gpu.noswapMib + gpu.swappableMib) : commitRoomMib(gpu))),
    facet.gpuCount,
  )
  let entry = facet.nodeEntries.get(node)
  if (entry === undefined) {
    entry = newIndexEntry(node)
    facet.nodeEntries.set(node, entry)
  }
  const isMoved = entry.chunk === null || entry.key1 !== -room || entry.value !== ever
  if (isMoved) facet.nodes.set(entry, -room, 0, ever)
  return isMoved
}

function dropEntry<T>(index: OrderedIndex<T>, entries: Map<T, IndexEntry<T>>, item: T): void {
  const entry = entries.get(item)
  if (entry === undefined) return
  index.remove(entry)
  entries.delete(item)
}

/** The k-th largest of a few numbers: what each of k GPUs admits at least; NOTHING when there are fewer. */
function kthLargest(values: readonly Mib[], k: number): Mib {
  if (values.length < k) return NOTHING
  if (k === 1) return Math.max(...values)
  // Numbers alone: a typed array sorts by value.
  const sorted = Float64Array.from(values).sort((a, b) => b - a)
  return sorted[k - 1] as Mib
}
