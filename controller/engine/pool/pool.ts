/**
 * A pool: the GPUs that tasks of one set of groups may use, indexed by what they admit. Kept up to date
 * lazily, GPU by GPU.
 */
import type { Mib } from '../../../protocol/units.ts'
import type { Policy } from '../../domain/config.ts'
import type { Task, TaskSpec } from '../../domain/task.ts'
import { isRefusedBy, largestEverMib, NOTHING } from '../../scheduler/feasible.ts'
import type { PoolView } from '../../scheduler/schedule.ts'
import type { When } from '../../scheduler/score.ts'
import { byScore, isEnoughLeaving } from '../../scheduler/score.ts'
import type { RequestKind, Shape } from '../../scheduler/shape.ts'
import { kindOf, searchDemandMib } from '../../scheduler/shape.ts'
import type { Queued } from '../../scheduler/queue.ts'
import type { Facet } from './facet.ts'
import type { HeldLane } from './hold-index.ts'
import type { LiveGpu, LiveNode } from '../live.ts'
import { laneOf } from './lanes.ts'
import type { NearPlace } from './near-index.ts'
import { NearIndex } from './near-index.ts'
import { RaiseLog } from './raise-log.ts'
import { SeatTable } from './seat-table.ts'
import type { NodeSeat, Seat, Unit } from './seats.ts'
import { sortDescending } from './seats.ts'

/**
 * How far a pool was when somebody looked: its holds, members and policy, and what GPUs had come to admit
 * more.
 */
export interface Standing {
  readonly version: number
  readonly now: number
  readonly after: number
}

/** Indexes of nearness, each as far as it was brought up to date. */
export interface Nearness {
  readonly nearVersion: number
  readonly indexes: readonly {
    readonly kind: RequestKind
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
  /** What fits now, and what fits after a swap; null as long as nobody has asked. */
  readonly #tables: Record<When, SeatTable | null> = { now: null, after_swap: null }
  readonly #nearIndexes: NearIndex[] = []
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
    const nodeSeat: NodeSeat = {
      node,
      number: this.#nodeCount,
      unit: { number: this.#nodeCount++, firstSeat: this.#seatCount, seats: [] },
      isMember: true,
    }
    for (const gpu of node.gpus) {
      const number = this.#seatCount++
      const unit = { number, firstSeat: number, seats: [] as Seat[] }
      const seat: Seat = { pool: this, gpu, number, unit, node: nodeSeat }
      unit.seats.push(seat)
      nodeSeat.unit.seats.push(seat)
      gpu.seats.push(seat)
      this.mark(seat, true)
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
    this.#tables.now?.drop(nodeSeat)
    this.#tables.after_swap?.drop(nodeSeat)
    for (const index of this.#nearIndexes) index.drop(nodeSeat)
  }

  /** A reserve changed: what could ever fit is derived again. */
  forgetEver(): void {
    this.#everByShape.clear()
    this.version += 1
    this.membershipVersion += 1
  }

  /** The GPU's books, its node or its holds changed, and so, perhaps, did what makes it near. */
  mark(seat: Seat, isNearChanged: boolean): void {
    this.#tables.now?.mark(seat)
    this.#tables.after_swap?.mark(seat)
    if (isNearChanged) for (const index of this.#nearIndexes) index.mark(seat.node)
  }

  /** More of the GPU's bytes may leave, or fewer: what fits now stays. */
  markRipeness(seat: Seat): void {
    this.#tables.after_swap?.mark(seat)
  }

  /** The policy or a node's reserve changed: every figure and every order may have. */
  rebuild(policy: Policy): void {
    this.#policy = policy
    this.#tables.now = null
    this.#tables.after_swap = null
    this.#nearIndexes.length = 0
    this.#everByShape.clear()
    this.version += 1
    this.membershipVersion += 1
  }

  /**
   * As things are: nothing of this shape fits, and whoever remembers it may ask later whether that has
   * changed.
   */
  standing(shape: Shape): Standing {
    return {
      version: this.version,
      now: this.#raisesOf(shape, 'now').count,
      after: this.#raisesOf(shape, 'after_swap').count,
    }
  }

  /** Might a task of this shape that asks for no less fit now, where none did then? */
  mayFitSince(shape: Shape, then: Standing, leastMib: Mib): boolean {
    if (then.version !== this.version) return true
    if (this.#raisesOf(shape, 'now').largestSince(then.now) >= leastMib) return true
    return this.#raisesOf(shape, 'after_swap').largestSince(then.after) >= leastMib
  }

  /**
   * Grows whenever some node comes nearer to, or farther from, taking a task that misses commit room, or may
   * no longer be asked, or may be from now on.
   */
  get nearVersion(): number {
    for (const index of this.#nearIndexes) this.#nearVersion += index.catchUp()
    return this.#nearVersion + this.membershipVersion
  }

  largestMib(shape: Shape, when: When): Mib {
    if (isNever(shape, when)) return NOTHING
    return this.#facetFor(shape, when).maxMib(laneFor(shape, when))
  }

  holds(shape: Shape): HeldLane {
    return this.#heldFor(shape, shape.kind === 'exclusive' ? 'now' : 'after_swap')
  }

  heldGpusFor(shape: Shape, when: When, queued: Queued, demandMib: Mib): Iterable<LiveGpu> {
    if (isNever(shape, when)) return NO_GPUS
    const held = this.#heldFor(shape, when)
    return held.isEmpty ? NO_GPUS : firstGpus(held.unitsFor(queued, demandMib))
  }

  *heldNodesFor(shape: Shape, when: When, queued: Queued, demandMib: Mib): Generator<LiveNode> {
    for (const gpu of this.heldGpusFor(shape, when, queued, demandMib)) yield gpu.node
  }

  firstGpuFor(shape: Shape, when: When, demandMib: Mib, task: Task): LiveGpu | null {
    for (const gpu of this.gpusFor(shape, when, demandMib)) if (!isRefusedBy(task, gpu.node)) return gpu
    return null
  }

  /**
   * The index orders GPUs by what is free once all that moves has left: those where that is enough come first
   * there, the largest surplus first.
   */
  *gpusFor(shape: Shape, when: When, demandMib: Mib): Generator<LiveGpu> {
    if (when === 'now') return yield* this.#gpusInIndex(shape, when, demandMib)
    let enoughLeaving: LiveGpu[] | null = []
    for (const gpu of this.#gpusInIndex(shape, when, demandMib)) {
      if (enoughLeaving !== null && isEnoughLeaving(gpu, demandMib)) {
        enoughLeaving.push(gpu)
        continue
      }
      if (enoughLeaving !== null) yield* this.#inOrder(enoughLeaving, demandMib)
      enoughLeaving = null
      yield gpu
    }
    if (enoughLeaving !== null) yield* this.#inOrder(enoughLeaving, demandMib)
  }

  #inOrder(gpus: LiveGpu[], demandMib: Mib): LiveGpu[] {
    const { strategy } = this.#policy
    return gpus.sort((a, b) => byScore(a, b, 'after_swap', strategy, demandMib))
  }

  *#gpusInIndex(shape: Shape, when: When, demandMib: Mib): Generator<LiveGpu> {
    if (isNever(shape, when)) return
    const facet = this.#facetFor(shape, when)
    const lane = laneFor(shape, when)
    for (
      let unit = facet.unitFor(lane, demandMib, null);
      unit !== null;
      unit = facet.unitFor(lane, demandMib, unit)
    ) {
      yield (unit.seats[0] as Seat).gpu
    }
  }

  *nodesFor(shape: Shape, when: When, demandMib: Mib): Generator<LiveNode> {
    for (const gpu of this.#gpusInIndex(shape, when, demandMib)) yield gpu.node
  }

  /**
   * Nodes that could ever take the task, nearest first: by what its worst GPU there misses (`nearnessMib`).
   */
  *nearestNodes(spec: TaskSpec): Generator<LiveNode> {
    const index = this.#nearIndexFor(kindOf(spec), spec.gpuCount).nodes
    const demandMib = searchDemandMib(spec)
    for (
      let entry = index.firstAtLeast(demandMib);
      entry !== null;
      entry = index.nextAtLeast(entry, demandMib)
    )
      yield entry.item
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

  /**
   * How near nodes were when somebody looked last, for `memory/`. Nobody looks here: what has changed since
   * stays unseen.
   */
  get nearness(): Nearness {
    return {
      nearVersion: this.#nearVersion,
      indexes: this.#nearIndexes.map((index) => ({
        kind: index.kind,
        gpuCount: index.gpuCount,
        places: [...index.places()],
        unseen: index.unseen(),
      })),
    }
  }

  /** The same, taken up again by a pool whose members are known. */
  recallNearness({ nearVersion, indexes }: Nearness): void {
    this.#nearVersion = nearVersion
    for (const { kind, gpuCount, places, unseen } of indexes) {
      const index = new NearIndex(kind, gpuCount)
      this.#nearIndexes.push(index)
      for (const [node, minusRoomMib, everMib] of places) {
        const seat = this.nodes.get(node)
        if (seat !== undefined) index.recall(seat, minusRoomMib, everMib)
      }
      for (const node of unseen) {
        const seat = this.nodes.get(node)
        if (seat !== undefined) index.mark(seat)
      }
    }
  }

  #heldFor(shape: Shape, when: When): HeldLane {
    return this.#facetFor(shape, when).heldFor(laneFor(shape, when))
  }

  #facetFor({ gpuCount }: Shape, when: When): Facet {
    return this.#tableFor(when).facetFor(gpuCount, this.nodes.values())
  }

  #raisesOf(shape: Shape, when: When): RaiseLog {
    if (isNever(shape, when)) return NO_RAISES
    const table = this.#tableFor(when)
    table.catchUp()
    return table.raises[laneFor(shape, when)] as RaiseLog
  }

  #tableFor(when: When): SeatTable {
    return (this.#tables[when] ??= new SeatTable(when, this.#policy, this.nodes.values()))
  }

  #nearIndexFor(kind: RequestKind, gpuCount: number): NearIndex {
    let index = this.#nearIndexes.find((each) => each.kind === kind && each.gpuCount === gpuCount)
    if (index === undefined) {
      index = new NearIndex(kind, gpuCount)
      this.#nearIndexes.push(index)
      for (const node of this.nodes.values()) index.takeIn(node)
    }
    this.#nearVersion += index.catchUp()
    return index
  }
}

/** An exclusive task waits for no swap. */
function isNever({ kind }: Shape, when: When): boolean {
  return when === 'after_swap' && kind === 'exclusive'
}

function laneFor({ kind, isP0 }: Shape, when: When): number {
  return laneOf(when, kind, isP0)
}

const NO_GPUS: readonly LiveGpu[] = []
const NO_RAISES = new RaiseLog()

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
