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
import { NodeSlot } from './node-slot.ts'

/** What one index answers: GPUs (one GPU asked for) or nodes (several), by kind of request. */
interface Facet {
  readonly kind: RequestKind
  readonly when: When
  readonly isP0: boolean
  readonly gpuCount: number
  readonly gpus: OrderedIndex<LiveGpu>
  readonly gpuEntries: Map<LiveGpu, IndexEntry<LiveGpu>>
  readonly nodes: OrderedIndex<LiveNode>
  readonly nodeSlots: Map<LiveNode, NodeSlot>
}

/** Nodes by how near they come to taking a task that misses commit room everywhere (semantics 4, reservation). */
interface NearFacet {
  readonly isExclusive: boolean
  readonly gpuCount: number
  readonly nodes: OrderedIndex<LiveNode>
  readonly nodeEntries: Map<LiveNode, IndexEntry<LiveNode>>
}

export class Pool implements PoolView {
  readonly key: string
  readonly nodes = new Set<LiveNode>()
  readonly heldGpus = new Set<LiveGpu>()
  /** Grows whenever something changed that could make a blocked task fit. */
  version = 0
  #policy: Policy
  #facets: Facet[] = []
  readonly #facetByShape = new Map<string, Facet>()
  readonly #nearFacets = new Map<string, NearFacet>()
  readonly #stale: LiveGpu[] = []
  readonly #everByShape = new Map<string, Mib>()

  constructor(key: string, policy: Policy) {
    this.key = key
    this.#policy = policy
  }

  addNode(node: LiveNode): void {
    this.nodes.add(node)
    this.#everByShape.clear()
    this.version += 1
    for (const gpu of node.gpus) this.markStale(gpu)
  }

  removeNode(node: LiveNode): void {
    this.nodes.delete(node)
    this.#everByShape.clear()
    this.version += 1
    for (const gpu of node.gpus) this.heldGpus.delete(gpu)
    for (const facet of this.#facets) {
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
  }

  /** The GPU's figures, holds or node status changed. */
  markStale(gpu: LiveGpu): void {
    this.#stale.push(gpu)
  }

  /** The policy or a node's reserve changed: every figure and every order may have. */
  rebuild(policy: Policy): void {
    this.#policy = policy
    this.#facets = []
    this.#facetByShape.clear()
    this.#nearFacets.clear()
    this.#everByShape.clear()
    this.#stale.length = 0
    this.version += 1
  }

  /** Brings the indexes up to date with the GPUs marked since the last call. */
  refresh(): void {
    const stale = this.#stale
    if (stale.length === 0) return
    this.version += 1
    for (const gpu of stale) {
      if (!this.nodes.has(gpu.node)) continue
      if (gpu.holds.length > 0) this.heldGpus.add(gpu)
      else this.heldGpus.delete(gpu)
      for (const facet of this.#facets) this.#index(facet, gpu)
      for (const facet of this.#nearFacets.values()) indexNear(facet, gpu.node)
    }
    stale.length = 0
  }

  largestMib(shape: Shape, when: When): Mib {
    if (when === 'after_swap' && shape.kind === 'exclusive') return NOTHING
    const facet = this.#facetFor(shape, when)
    return facet.gpuCount === 1 ? facet.gpus.maxValue() : facet.nodes.maxValue()
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
    const key = `${when} ${shape.kind} ${shape.gpuCount} ${when === 'now' ? '' : String(shape.isP0)}`
    let facet = this.#facetByShape.get(key)
    if (facet === undefined) {
      facet = {
        kind: shape.kind,
        when,
        isP0: shape.isP0,
        gpuCount: shape.gpuCount,
        gpus: new OrderedIndex<LiveGpu>(byGpuId),
        gpuEntries: new Map(),
        nodes: new OrderedIndex<LiveNode>(byNodeId),
        nodeSlots: new Map(),
      }
      this.#facetByShape.set(key, facet)
      this.#facets.push(facet)
      for (const node of this.nodes) for (const gpu of node.gpus) this.#index(facet, gpu)
    }
    return facet
  }

  #nearFacetFor(isExclusive: boolean, gpuCount: number): NearFacet {
    const key = `${String(isExclusive)} ${gpuCount}`
    let facet = this.#nearFacets.get(key)
    if (facet === undefined) {
      facet = { isExclusive, gpuCount, nodes: new OrderedIndex<LiveNode>(byNodeId), nodeEntries: new Map() }
      this.#nearFacets.set(key, facet)
      for (const node of this.nodes) indexNear(facet, node)
    }
    return facet
  }

  #index(facet: Facet, gpu: LiveGpu): void {
    const { key1, key2 } = scoreOf(gpu, facet.when, this.#policy.strategy)
    const mib = this.#admits(facet, gpu)
    if (facet.gpuCount === 1) {
      entryOf(facet.gpuEntries, gpu, (entry) => facet.gpus.set(entry, key1, key2, mib))
      return
    }
    let slot = facet.nodeSlots.get(gpu.node)
    if (slot === undefined) {
      slot = new NodeSlot(gpu.node, facet.gpuCount)
      facet.nodeSlots.set(gpu.node, slot)
    }
    slot.set(gpu.index, key1, key2, mib)
    facet.nodes.set(slot.entry, slot.sum1, slot.sum2, slot.kthLargestMib())
  }

  #admits(facet: Facet, gpu: LiveGpu): Mib {
    if (gpu.holds.length > 0) return NOTHING
    const now = largestNowMib(gpu, facet.kind, this.#policy.maxTasksPerGpu)
    if (facet.when === 'now') return now
    return Math.max(now, largestAfterSwapMib(gpu, facet.kind, facet.isP0, this.#policy.maxTasksPerGpu))
  }
}

function indexNear(facet: NearFacet, node: LiveNode): void {
  const ever = isPlaceable(node) ? kthLargest(node.gpus.map(largestEverMib), facet.gpuCount) : NOTHING
  const room = kthLargest(
    node.gpus.map((gpu) => (facet.isExclusive ? -(gpu.noswapMib + gpu.swappableMib) : commitRoomMib(gpu))),
    facet.gpuCount,
  )
  entryOf(facet.nodeEntries, node, (entry) => facet.nodes.set(entry, -room, 0, ever))
}

function entryOf<T>(entries: Map<T, IndexEntry<T>>, item: T, use: (entry: IndexEntry<T>) => void): void {
  let entry = entries.get(item)
  if (entry === undefined) {
    entry = newIndexEntry(item)
    entries.set(item, entry)
  }
  use(entry)
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
  const sorted = [...values].sort((a, b) => b - a)
  return sorted[k - 1] as Mib
}
