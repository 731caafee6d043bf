/**
 * How fast each node copies and starts tasks, from durable events. A copy that shared its GPU's link with
 * another one is left out: the simulator adds that delay itself.
 */
import type { Event } from '../../controller/model/event.ts'
import type { Placement } from '../../controller/model/placement.ts'
import type { FittedCopies, MethodSpeeds, NodeSpeeds } from '../../controller/ports/twin.ts'
import type { DurationMs, Instant, Mib, SwapMethod } from '../../protocol/units.ts'
import { SWAP_PROFILES, type SwapProfile } from '../scenario/swap-profiles.ts'
import { copyErrorPercent, fitCopies, median, type CopyLine, type ObservedCopy } from './copy-fit.ts'

/** Latest observations of each kind on a node. */
export const MAX_OBSERVED = 32

/** With fewer observed starts, a start takes no time. */
const MIN_STARTS = 3

type Way = 'out' | 'in'

/** Begun, and not ended. */
interface Copy {
  readonly way: Way
  readonly method: SwapMethod
  readonly at: Instant
  readonly mib: Mib
  readonly links: readonly string[]
  isAlone: boolean
}

export class ObservedSpeeds {
  readonly #profile: SwapProfile
  readonly #copies = new Map<string, Copy>()
  /** Tasks that copy over a link. */
  readonly #links = new Map<string, Set<string>>()
  readonly #starting = new Map<string, Instant>()
  readonly #nodes = new Map<string, ObservedNode>()

  /** @param profile of a node without observations */
  constructor(profile: SwapProfile = SWAP_PROFILES['stock-driver']) {
    this.#profile = profile
  }

  /** @param placement of the event's task as it is after the event; null: it has none */
  see(event: Event, placement: Placement | null): void {
    const { kind, taskId, nodeId, at } = event
    if (kind === 'node_forgotten' && nodeId !== null) this.#nodes.delete(nodeId)
    if (taskId === null) return
    if (kind === 'task_placed') this.#starting.set(taskId, at)
    else if (kind === 'task_started') this.#started(taskId, event)
    else if (kind === 'task_residency') this.#moved(taskId, event, placement)
    else if (kind === 'task_finished' || kind === 'task_returned') this.#forget(taskId)
    else if (kind === 'task_unreachable') this.#forget(taskId)
  }

  /** Returns the speeds of nodes with observations, in the order of their first observation. */
  all(): readonly NodeSpeeds[] {
    return [...this.#nodes].map(([nodeId, node]) => node.speeds(nodeId, this.#profile))
  }

  #started(taskId: string, { nodeId, at }: Event): void {
    const from = this.#starting.get(taskId)
    this.#starting.delete(taskId)
    if (from !== undefined && nodeId !== null) this.#node(nodeId).start(at - from, at)
  }

  #moved(taskId: string, { nodeId, at, data }: Event, placement: Placement | null): void {
    const residency = data['residency']
    if (residency === 'swapping_out' || residency === 'swapping_in') {
      if (placement !== null) this.#begin(taskId, residency === 'swapping_out' ? 'out' : 'in', at, placement)
      return
    }
    const copy = this.#copies.get(taskId)
    this.#forget(taskId)
    if (copy === undefined || nodeId === null || residency !== ENDS[copy.way]) return
    // Only a complete swap-out tells how much stays behind.
    const stays = copy.way === 'out' ? (placement?.residualMib ?? 0) : 0
    if (!copy.isAlone || copy.mib <= stays) return
    this.#node(nodeId).copied(copy, { mib: copy.mib - stays, ms: at - copy.at }, stays, at)
  }

  #begin(taskId: string, way: Way, at: Instant, placement: Placement): void {
    const { task, node, gpus, demandMib, residualMib } = placement
    this.#forget(taskId)
    const own = gpus.map(({ index }) => `${node.id}/${index}`)
    const links = node.hostLinkMibPerS === null ? own : [...own, node.id]
    const mib = demandMib - (way === 'in' ? residualMib : 0)
    const copy: Copy = { way, method: task.spec.swapMethod ?? 'driver', at, mib, links, isAlone: true }
    for (const link of links) {
      const others = this.#links.get(link) ?? new Set()
      for (const other of others) {
        copy.isAlone = false
        const before = this.#copies.get(other)
        if (before !== undefined) before.isAlone = false
      }
      this.#links.set(link, others.add(taskId))
    }
    this.#copies.set(taskId, copy)
  }

  #forget(taskId: string): void {
    for (const link of this.#copies.get(taskId)?.links ?? []) {
      const others = this.#links.get(link)
      others?.delete(taskId)
      if (others?.size === 0) this.#links.delete(link)
    }
    this.#copies.delete(taskId)
    this.#starting.delete(taskId)
  }

  #node(id: string): ObservedNode {
    const node = this.#nodes.get(id) ?? new ObservedNode()
    this.#nodes.set(id, node)
    return node
  }
}

const ENDS: Readonly<Record<Way, string>> = { out: 'swapped_out', in: 'resident' }

class ObservedNode {
  readonly #methods = new Map<SwapMethod, ObservedMethod>()
  readonly #starts: DurationMs[] = []
  #latestAt: Instant = 0
  /** Null: there are observations since. */
  #speeds: NodeSpeeds | null = null

  copied({ way, method }: Pick<Copy, 'way' | 'method'>, copy: ObservedCopy, stays: Mib, at: Instant): void {
    const observed = this.#methods.get(method) ?? new ObservedMethod()
    this.#methods.set(method, observed)
    observed.add(way, copy, stays)
    this.#changed(at)
  }

  start(ms: DurationMs, at: Instant): void {
    keepLatest(this.#starts, ms)
    this.#changed(at)
  }

  speeds(nodeId: string, profile: SwapProfile): NodeSpeeds {
    const starts = this.#starts
    return (this.#speeds ??= {
      nodeId,
      methods: [...this.#methods].map(([method, observed]) => observed.speeds(method, profile)),
      starts: { observed: starts.length, ms: starts.length < MIN_STARTS ? 0 : Math.round(median(starts)) },
      latestAt: this.#latestAt,
    })
  }

  #changed(at: Instant): void {
    this.#latestAt = at
    this.#speeds = null
  }
}

class ObservedMethod {
  readonly #copies: Readonly<Record<Way, ObservedCopy[]>> = { out: [], in: [] }
  readonly #stays: Mib[] = []

  add(way: Way, copy: ObservedCopy, stays: Mib): void {
    keepLatest(this.#copies[way], copy)
    if (way === 'out') keepLatest(this.#stays, stays)
  }

  speeds(method: SwapMethod, { outFixedMs, outMibPerS, inFixedMs, inMibPerS }: SwapProfile): MethodSpeeds {
    return {
      method,
      out: fitted(this.#copies.out, { fixedMs: outFixedMs, mibPerS: outMibPerS }),
      in: fitted(this.#copies.in, { fixedMs: inFixedMs, mibPerS: inMibPerS }),
      residualMib: this.#stays.length === 0 ? 0 : Math.round(median(this.#stays)),
    }
  }
}

function keepLatest<T>(list: T[], one: T): void {
  list.push(one)
  if (list.length > MAX_OBSERVED) list.shift()
}

function fitted(copies: readonly ObservedCopy[], profile: CopyLine): FittedCopies {
  const line = fitCopies(copies, profile)
  return {
    ...line,
    observed: copies.length,
    errorPercent: copyErrorPercent(copies, line),
    profileErrorPercent: copyErrorPercent(copies, profile),
  }
}
