/**
 * A pool: the GPUs that tasks with one set of groups may use, indexed by the demand they admit. Updated
 * lazily, GPU by GPU.
 */
import type { Mib } from '../../../protocol/units.ts'
import type { Policy } from '../../model/config.ts'
import type { TaskSpec } from '../../../protocol/task.ts'
import type { Task } from '../../model/placement.ts'
import { isRefusedBy, largestEverOn, NOTHING } from '../../policy/placement/feasible.ts'
import type { PoolView } from '../../policy/placement/schedule.ts'
import type { PlacementTiming } from '../../policy/placement/score.ts'
import { byScore, isEnoughLeaving } from '../../policy/placement/score.ts'
import type { RequestKind, Shape } from '../../policy/placement/shape.ts'
import { kindOf, searchDemandMib } from '../../policy/placement/shape.ts'
import type { Queued } from '../../policy/placement/queue.ts'
import type { PoolRanking } from './pool-ranking.ts'
import type { KindOffers } from './reservation-index.ts'
import type { LiveGpu, LiveNode, NodePool } from '../facts.ts'
import { requestColumnOf } from './request-columns.ts'
import type { ShortfallPlace } from './shortfall-index.ts'
import { ShortfallIndex } from './shortfall-index.ts'
import { CapacityGainLog } from './capacity-gain-log.ts'
import { MemberTable } from './member-table.ts'
import type { MemberPool, NodeMember, Unit } from './pool-members.ts'
import { PoolMember } from './pool-members.ts'

/**
 * The state of a pool at a point in time: its reservations, members and policy, and the capacity gains so
 * far.
 */
export interface PoolVersion {
  readonly version: number
  readonly now: number
  readonly after: number
}

/** The shortfall indexes, each as last updated. */
export interface ShortfallIndexes {
  readonly shortfallVersion: number
  readonly indexes: readonly {
    readonly kind: RequestKind
    readonly gpuCount: number
    readonly places: readonly ShortfallPlace[]
    /** Oldest first. */
    readonly unseen: readonly LiveNode[]
  }[]
}

export class Pool implements PoolView, NodePool, MemberPool {
  readonly key: string
  readonly nodes = new Map<LiveNode, NodeMember>()
  /** Grows whenever a reservation, a member or the policy changes: blocked queues are then searched again. */
  version = 0
  #policy: Policy
  /** GPUs that admit a demand now, and after a swap; null until first used. */
  readonly #tables: Record<PlacementTiming, MemberTable | null> = { now: null, after_swap: null }
  readonly #shortfallIndexes: ShortfallIndex[] = []
  /** Grows with every change of order among the nodes. */
  #shortfallVersion = 0
  /** Grows whenever a node joins or leaves, or a reserve or the policy changes. */
  membershipVersion = 0
  #memberCount = 0
  #nodeCount = 0
  readonly #everByShape = new Map<string, Mib>()

  constructor(key: string, policy: Policy) {
    this.key = key
    this.#policy = policy
  }

  addNode(node: LiveNode): void {
    const nodeMember: NodeMember = {
      node,
      number: this.#nodeCount,
      unit: { number: this.#nodeCount++, firstMember: this.#memberCount, members: [] },
      isMember: true,
    }
    for (const gpu of node.gpus) {
      const member = new PoolMember(this, gpu, this.#memberCount++, nodeMember)
      nodeMember.unit.members.push(member)
      gpu.indexes.push(member)
      this.mark(member, true)
    }
    this.nodes.set(node, nodeMember)
    this.#everByShape.clear()
    this.version += 1
    this.membershipVersion += 1
  }

  removeNode(node: LiveNode): void {
    const nodeMember = this.nodes.get(node)
    if (nodeMember === undefined) return
    nodeMember.isMember = false
    this.nodes.delete(node)
    for (const member of nodeMember.unit.members)
      member.gpu.indexes = member.gpu.indexes.filter((index) => index !== member)
    this.#everByShape.clear()
    this.version += 1
    this.membershipVersion += 1
    this.#tables.now?.drop(nodeMember)
    this.#tables.after_swap?.drop(nodeMember)
    for (const index of this.#shortfallIndexes) index.drop(nodeMember)
  }

  /** A reserve changed: clears the cached largest demands. */
  reserveChanged(): void {
    this.#everByShape.clear()
    this.version += 1
    this.membershipVersion += 1
  }

  /** The GPU's ledger, node or reservations changed, and possibly its shortfall figures. */
  mark(member: PoolMember, areFiguresChanged: boolean): void {
    this.#tables.now?.mark(member)
    this.#tables.after_swap?.mark(member)
    if (areFiguresChanged) for (const index of this.#shortfallIndexes) index.mark(member.node)
  }

  /** The eligible bytes of the GPU changed: demands that fit now are unaffected. */
  markEligibleBytes(member: PoolMember): void {
    this.#tables.after_swap?.mark(member)
  }

  /** The policy or a node's reserve changed: every figure and order may have changed. */
  rebuild(policy: Policy): void {
    this.#policy = policy
    this.#tables.now = null
    this.#tables.after_swap = null
    this.#shortfallIndexes.length = 0
    this.#everByShape.clear()
    this.version += 1
    this.membershipVersion += 1
  }

  /** Returns the current version for the shape; `mayFitSince` compares it later. */
  versionFor(shape: Shape): PoolVersion {
    return {
      version: this.version,
      now: this.#gainsOf(shape, 'now').count,
      after: this.#gainsOf(shape, 'after_swap').count,
    }
  }

  /**
   * Returns true if a task of this shape with at least this demand might fit now although none did at that
   * version.
   */
  mayFitSince(shape: Shape, then: PoolVersion, leastMib: Mib): boolean {
    if (then.version !== this.version) return true
    if (this.#gainsOf(shape, 'now').largestSince(then.now) >= leastMib) return true
    return this.#gainsOf(shape, 'after_swap').largestSince(then.after) >= leastMib
  }

  /** Grows whenever the shortfall order of nodes changes, or nodes join, leave or change their reserve. */
  get shortfallVersion(): number {
    for (const index of this.#shortfallIndexes) this.#shortfallVersion += index.catchUp()
    return this.#shortfallVersion + this.membershipVersion
  }

  largestMib(shape: Shape, when: PlacementTiming): Mib {
    if (isNever(shape, when)) return NOTHING
    return this.#rankingFor(shape, when).maxMib(columnFor(shape, when))
  }

  reservedOffers(shape: Shape): KindOffers {
    return this.#offersFor(shape, shape.kind === 'exclusive' ? 'now' : 'after_swap')
  }

  reservedGpusFor(shape: Shape, when: PlacementTiming, queued: Queued, demandMib: Mib): Iterable<LiveGpu> {
    if (isNever(shape, when)) return NO_GPUS
    const reserved = this.#offersFor(shape, when)
    return reserved.isEmpty ? NO_GPUS : firstGpus(reserved.unitsFor(queued, demandMib))
  }

  *reservedNodesFor(
    shape: Shape,
    when: PlacementTiming,
    queued: Queued,
    demandMib: Mib,
  ): Generator<LiveNode> {
    for (const gpu of this.reservedGpusFor(shape, when, queued, demandMib)) yield gpu.node
  }

  firstGpuFor(shape: Shape, when: PlacementTiming, demandMib: Mib, task: Task): LiveGpu | null {
    // Nearly always the first of the index may have it.
    const gpus =
      when === 'now' ? this.#gpusInIndex(shape, when, demandMib) : this.gpusFor(shape, when, demandMib)
    for (const gpu of gpus) if (!isRefusedBy(task, gpu.node)) return gpu
    return null
  }

  /**
   * The index orders GPUs by what is free once all that moves has left. GPUs where that is enough come first
   * in it, largest surplus first; they are sorted by score here.
   */
  *gpusFor(shape: Shape, when: PlacementTiming, demandMib: Mib): Generator<LiveGpu> {
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

  *#gpusInIndex(shape: Shape, when: PlacementTiming, demandMib: Mib): Generator<LiveGpu> {
    if (isNever(shape, when)) return
    const ranking = this.#rankingFor(shape, when)
    const column = columnFor(shape, when)
    for (
      let unit = ranking.unitFor(column, demandMib, null);
      unit !== null;
      unit = ranking.unitFor(column, demandMib, unit)
    ) {
      yield (unit.members[0] as PoolMember).gpu
    }
  }

  *nodesFor(shape: Shape, when: PlacementTiming, demandMib: Mib): Generator<LiveNode> {
    for (const gpu of this.#gpusInIndex(shape, when, demandMib)) yield gpu.node
  }

  /**
   * Yields nodes that could ever take the task, least shortfall first, by its worst GPU there
   * (`reservationRoomMib`).
   */
  *nodesByShortfall(spec: TaskSpec): Generator<LiveNode> {
    const index = this.#shortfallIndexFor(kindOf(spec), spec.gpuCount).nodes
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

  /** The shortfall indexes as last updated, for checkpoints; later changes stay unprocessed. */
  get shortfallIndexes(): ShortfallIndexes {
    return {
      shortfallVersion: this.#shortfallVersion,
      indexes: this.#shortfallIndexes.map((index) => ({
        kind: index.kind,
        gpuCount: index.gpuCount,
        places: [...index.places()],
        unseen: index.unseen(),
      })),
    }
  }

  /** Restores captured indexes. The members must be known. */
  restoreShortfallIndexes({ shortfallVersion, indexes }: ShortfallIndexes): void {
    this.#shortfallVersion = shortfallVersion
    for (const { kind, gpuCount, places, unseen } of indexes) {
      const index = new ShortfallIndex(kind, gpuCount)
      this.#shortfallIndexes.push(index)
      for (const [node, minusRoomMib, everMib] of places) {
        const member = this.nodes.get(node)
        if (member !== undefined) index.restore(member, minusRoomMib, everMib)
      }
      for (const node of unseen) {
        const member = this.nodes.get(node)
        if (member !== undefined) index.mark(member)
      }
    }
  }

  #offersFor(shape: Shape, when: PlacementTiming): KindOffers {
    return this.#rankingFor(shape, when).reservedOffersFor(columnFor(shape, when))
  }

  #rankingFor({ gpuCount }: Shape, when: PlacementTiming): PoolRanking {
    return this.#tableFor(when).rankingFor(gpuCount, this.nodes.values())
  }

  #gainsOf(shape: Shape, when: PlacementTiming): CapacityGainLog {
    if (isNever(shape, when)) return NO_GAINS
    const table = this.#tableFor(when)
    table.catchUp()
    return table.capacityGains[columnFor(shape, when)] as CapacityGainLog
  }

  #tableFor(when: PlacementTiming): MemberTable {
    return (this.#tables[when] ??= new MemberTable(when, this.#policy, this.nodes.values()))
  }

  #shortfallIndexFor(kind: RequestKind, gpuCount: number): ShortfallIndex {
    let index = this.#shortfallIndexes.find((each) => each.kind === kind && each.gpuCount === gpuCount)
    if (index === undefined) {
      index = new ShortfallIndex(kind, gpuCount)
      this.#shortfallIndexes.push(index)
      for (const node of this.nodes.values()) index.takeIn(node)
    }
    this.#shortfallVersion += index.catchUp()
    return index
  }
}

/** Exclusive tasks wait for no swap. */
function isNever({ kind }: Shape, when: PlacementTiming): boolean {
  return when === 'after_swap' && kind === 'exclusive'
}

function columnFor({ kind, isP0 }: Shape, when: PlacementTiming): number {
  return requestColumnOf(when, kind, isP0)
}

const NO_GPUS: readonly LiveGpu[] = []
const NO_GAINS = new CapacityGainLog()

function* firstGpus(units: Iterable<Unit>): Generator<LiveGpu> {
  for (const unit of units) yield (unit.members[0] as PoolMember).gpu
}
