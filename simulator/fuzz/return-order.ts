/**
 * Who returns while somebody ahead of him waits whom the same bytes would have let return, and who should collect and does not (semantics 5, "Return").
 * Looked at when a turn is over, in a world where a turn is decided in one cycle.
 */
import type { Event } from '../../controller/domain/event.ts'
import type { Instant, Mib } from '../../protocol/units.ts'
import type { Report } from '../check/violation.ts'
import type { World } from '../world.ts'

type Cluster = World['controller']['engine']['cluster']
type LiveTask = Cluster['tasks'] extends ReadonlyMap<string, infer T> ? T : never
type LiveNode = Cluster['nodes'] extends ReadonlyMap<string, infer N> ? N : never
type LiveEntry = LiveNode['queue'][number]
type LiveGpu = LiveEntry['gpus'][number]

/** Rank, then the instant at which it asked: smaller returns first. */
interface Turn {
  readonly rank: 0 | 1
  readonly askedAt: Instant
}

/**
 * Who owns his bytes keeps them until he is resident, also when somebody ahead of him has owned his and let go since (a collector, for a P0 entry): that
 * one is behind him from then on.
 */
export class ReturnOrder {
  readonly #world: World
  readonly #report: Report
  /** By task id: the turn after which its entry was seen to own its bytes, and the one after which it was seen to own them no more. */
  readonly #ownsSince = new Map<string, number>()
  readonly #letGoAt = new Map<string, number>()
  #turn = 0

  constructor(world: World, report: Report) {
    this.#world = world
    this.#report = report
  }

  /** A turn is over. */
  heard(events: readonly Event[]): void {
    this.#turn += 1
    this.#notice(events)
    for (const event of events) if (event.kind === 'swap_in_decided') this.#returns(event)
  }

  /** Whoever returns in this turn is in no queue any more, and is known as it was before. */
  #notice(events: readonly Event[]): void {
    const nodeIds = new Set(events.map(({ nodeId }) => nodeId))
    for (const nodeId of nodeIds) {
      for (const { task, owns } of this.#world.controller.engine.cluster.nodes.get(nodeId ?? '')?.queue ?? []) {
        const { id } = task.spec
        if (owns && !this.#ownsSince.has(id)) this.#ownsSince.set(id, this.#turn)
        else if (!owns && this.#ownsSince.delete(id)) this.#letGoAt.set(id, this.#turn)
      }
    }
  }

  #returns({ at, taskId, data }: Event): void {
    const { cluster } = this.#world.controller.engine
    const task = cluster.tasks.get(taskId ?? '')
    const placement = task?.placement
    if (task === undefined || placement === null || placement === undefined) return
    const { id } = task.spec
    const ownsSince = this.#ownsSince.get(id) ?? Infinity
    this.#ownsSince.delete(id)
    const turn = turnOf(cluster, task, at - (data['waited_ms'] as number), at)
    for (const entry of placement.node.queue) {
      if (entry.kind !== 'swap_in' || entry.owns || (entry.task.placement?.backOffUntil ?? 0) > at) continue
      const isServable = entry.needMib <= placement.demandMib && isSameGpus(entry.gpus, placement.gpus) && !isWorseFor(entry, task)
      const theirs = turnOf(cluster, entry.task, entry.askedAt, at)
      const isAhead = theirs.rank < turn.rank || (theirs.rank === turn.rank && theirs.askedAt < turn.askedAt)
      const hasLetGo = (this.#letGoAt.get(entry.task.spec.id) ?? -1) >= ownsSince
      if (isServable && isAhead && !hasLetGo)
        this.#report(`it returns while ${entry.task.spec.id}, which asked before, waits`, { taskId: id })
    }
  }
}

/** Every decision is over: a node whose oldest return has waited long, and could be covered by whoever is placed there, has a collector. */
export function checkCollector(world: World, nodeIds: Iterable<string>, report: Report): void {
  const { cluster } = world.controller.engine
  const now = world.clock.now()
  for (const nodeId of nodeIds) {
    const node = cluster.nodes.get(nodeId)
    if (node === undefined || node.collector !== null) continue
    const entry = node.queue.find((one) => shouldCollect(one, cluster, now))
    if (entry !== undefined) report('it has waited long, could be covered, and nobody collects', { nodeId, taskId: entry.task.spec.id })
  }
}

function shouldCollect(entry: LiveEntry, cluster: Cluster, now: Instant): boolean {
  if (entry.kind !== 'swap_in' || entry.owns || now - entry.askedAt < cluster.policy.swapInAgingMs) return false
  if ((entry.task.placement?.backOffUntil ?? 0) > now) return false
  return entry.gpus.every((gpu) => entry.needMib <= gpu.capacityMib - gpu.noswapMib && missingMib(gpu, entry) <= couldLeaveMib(gpu, entry))
}

function missingMib(gpu: LiveGpu, { needMib }: LiveEntry): Mib {
  const owned = gpu.owners.reduce((mib, owner) => mib + owner.needMib, 0)
  return needMib - (gpu.capacityMib - gpu.noswapResidentMib - gpu.swappableResidentMib + gpu.movingOutMib - owned)
}

function couldLeaveMib(gpu: LiveGpu, { task }: LiveEntry): Mib {
  let mib = 0
  for (const { task: other, noswap, residency, demandMib, startedAt } of gpu.placements) {
    const isFree = noswap === 0 && residency === 'resident' && other !== task && startedAt !== null
    if (isFree && (other.spec.priority !== 0 || task.spec.priority === 0)) mib += demandMib
  }
  return mib
}

function turnOf(cluster: Cluster, { spec }: LiveTask, askedAt: Instant, now: Instant): Turn {
  return { rank: spec.priority === 0 || now - askedAt >= cluster.policy.swapInAgingMs ? 0 : 1, askedAt }
}

/** P0 victims leave for P0 alone: what let the one return may not let the other. */
function isWorseFor({ task }: LiveEntry, { spec }: LiveTask): boolean {
  return spec.priority === 0 && task.spec.priority !== 0
}

function isSameGpus(a: readonly LiveGpu[], b: readonly LiveGpu[]): boolean {
  return a.length === b.length && a.every((gpu) => b.includes(gpu))
}
