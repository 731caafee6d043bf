/**
 * Checks the order of a node's queue: no entry gets VRAM while an entry ahead of it waits that the same VRAM
 * would serve, and the entry that should be the collector is (semantics 5, "Return"). Checked after a
 * transaction, in a world where a transaction is decided in one cycle. An entry is checked when its
 * reservation begins, or when it returns or starts without one: later requests wait for it.
 */
import type { Event } from '../../../controller/model/event.ts'
import type {
  ClusterReading,
  EntryReading,
  GpuReading,
  NodeReading,
  TaskReading,
} from '../../../controller/query/cluster-reading.ts'
import type { Instant, Mib } from '../../../protocol/units.ts'
import type { Report } from '../../check/violation.ts'
import type { World } from '../../world/world.ts'
import type { OwnersNow } from './owners.ts'

/** A task that gets its VRAM in this transaction. */
interface Served {
  readonly task: TaskReading
  readonly node: NodeReading
  readonly gpus: readonly GpuReading[]
  readonly mib: Mib
  readonly askedAt: Instant
  readonly isPlacement: boolean
}

export class ReturnOrder {
  readonly #world: World
  readonly #report: Report

  constructor(world: World, report: Report) {
    this.#world = world
    this.#report = report
  }

  /** Called after a transaction. */
  heard(events: readonly Event[], { before, begun }: OwnersNow): void {
    for (const entry of begun) this.#judge(servedEntry(entry), before)
    if (events.length === 0) return
    const { cluster } = this.#world.controller
    for (const event of events) {
      const served = servedByEvent(event, cluster)
      if (served !== null && !before.has(served.task.spec.id)) this.#judge(served, before)
    }
  }

  #judge(served: Served, ownersBefore: ReadonlySet<string>): void {
    const { cluster } = this.#world.controller
    const now = this.#world.clock.now()
    for (const entry of served.node.queue) {
      // Growths have their own conditions. A collector that released its reservation for a P0 entry is
      // behind that entry.
      const isWaiting =
        entry.kind === 'swap_in' && !entry.hasReserved && !ownersBefore.has(entry.task.spec.id)
      if (isWaiting && isServable(entry, served, now) && isAhead(entry, served, cluster, now))
        this.#reportWaiting(served, entry.task)
    }
    if (served.isPlacement) return
    const pending = firstPending(served, cluster, now)
    if (pending === null) return
    const reserving = [served, ...newCollector(served.node, ownersBefore)]
    if (reserving.some((entry) => isExcluded(pending, entry, cluster, now))) return
    if (isAhead({ task: pending, askedAt: pending.spec.submittedAt }, served, cluster, now))
      this.#reportWaiting(served, pending)
  }

  #reportWaiting({ task, isPlacement }: Served, waiting: TaskReading): void {
    const gets = isPlacement ? 'it is placed' : 'it returns'
    this.#report(`${gets} while ${waiting.spec.id}, which is ahead of it in the queue of the node, waits`, {
      taskId: task.spec.id,
    })
  }
}

function servedEntry({ kind, task, node, gpus, needMib, askedAt }: EntryReading): Served {
  return { task, node, gpus, mib: needMib, askedAt, isPlacement: kind === 'placement' }
}

/** Returns the task that gets VRAM by the event, or null if none does or another rule applies. */
function servedByEvent({ kind, taskId, at, data }: Event, cluster: ClusterReading): Served | null {
  const isReturn = kind === 'swap_in_decided' && data['eager'] !== true
  const task = cluster.tasks.get(taskId ?? '')
  const placement = task?.placement ?? null
  if ((!isReturn && kind !== 'task_placed') || task === undefined || placement === null) return null
  const askedAt = isReturn ? at - (data['waited_ms'] as number) : task.spec.submittedAt
  return {
    task,
    node: placement.node,
    gpus: placement.gpus,
    mib: placement.demandMib - placement.residualMib,
    askedAt,
    isPlacement: !isReturn,
  }
}

/**
 * Returns true if the same VRAM would serve the entry: it requests no more, on the same GPUs. Victims of a P0
 * entry serve only P0 entries.
 */
function isServable({ task, gpus, needMib }: EntryReading, served: Served, now: Instant): boolean {
  if ((task.placement?.backOffUntil ?? 0) > now || task === served.task || served.task.spec.noswap === 1)
    return false
  if (served.task.spec.priority === 0 && task.spec.priority !== 0) return false
  return (
    needMib <= served.mib &&
    gpus.length === served.gpus.length &&
    gpus.every((gpu) => served.gpus.includes(gpu))
  )
}

function isAhead(
  waiting: { readonly task: TaskReading; readonly askedAt: Instant },
  served: Served,
  { policy }: ClusterReading,
  now: Instant,
): boolean {
  const rank = ({ task, askedAt }: typeof waiting) =>
    task.spec.priority === 0 || now - askedAt >= policy.swapInAgingMs ? 0 : 1
  const difference = rank(waiting) - rank(served)
  return difference < 0 || (difference === 0 && waiting.askedAt < served.askedAt)
}

/**
 * Returns the first pending task that fits, if the VRAM could have served it, or null: later ones of its
 * shape take no part in the queue of the node. Checked only on a node with one
 * GPU, where no other choice exists, and without reservations, also of heads that became the collector in
 * this transaction: they excluded later tasks until then.
 */
function firstPending(
  { task, node, gpus, mib }: Served,
  cluster: ClusterReading,
  now: Instant,
): TaskReading | null {
  const [gpu] = gpus
  if (gpu === undefined || node.gpus.length > 1 || gpu.reservations.length > 0 || gpu.exclusiveTask !== null)
    return null
  if (gpu.pendingClaimants.some(({ askedAt }) => now - askedAt >= cluster.policy.reservationAfterMs))
    return null
  if (cluster.policy.strategy === 'fifo' || cluster.policy.queueAgingMs !== null || !acceptsTasks(node))
    return null
  const freeSlots = cluster.policy.maxTasksPerGpu - gpu.placements.length - gpu.pendingClaimants.length
  const freeMib = Math.min(
    gpu.limitMib - gpu.noswapMib - gpu.swappableMib,
    gpu.capacityMib - gpu.noswapMib,
    hostFreeMib(gpu),
  )
  if (freeSlots <= 0 || freeMib <= 0) return null
  let first: TaskReading | null = null
  for (const pending of cluster.tasks.values()) {
    const { spec, queue, refusedBy, trouble } = pending
    if (
      queue === null ||
      spec.gpuCount > 1 ||
      spec.noswap === 1 ||
      spec.gpuMode !== 'shared' ||
      spec.vramMib > freeMib
    )
      continue
    if (!node.pools.some(({ key }) => key === spec.groups.join('\n'))) continue
    if (refusedBy !== null || trouble.refusals.length > 0) return null
    if (first === null || spec.priority < first.spec.priority) first = pending
  }
  if (first === null || first.spec.vramMib > mib) return null
  return task.spec.priority !== 0 || first.spec.priority === 0 ? first : null
}

/**
 * Returns true if the pending task may not use the VRAM: an entry that has waited long reserves its GPUs
 * against later tasks of the pending queue (second exception).
 */
function isExcluded(
  { spec }: TaskReading,
  { task, askedAt }: Pick<Served, 'task' | 'askedAt'>,
  { policy }: ClusterReading,
  now: Instant,
): boolean {
  const isLater =
    spec.priority === task.spec.priority ? spec.seq > task.spec.seq : spec.priority > task.spec.priority
  return isLater && now - askedAt >= policy.reservationAfterMs
}

/** A return that became the collector in this transaction: it excluded later tasks until then. */
function newCollector(
  { collector }: NodeReading,
  ownersBefore: ReadonlySet<string>,
): readonly EntryReading[] {
  if (collector === null || collector.kind !== 'swap_in') return []
  return ownersBefore.has(collector.task.spec.id) ? [] : [collector]
}

function acceptsTasks(node: NodeReading): boolean {
  const { status, isCordoned, autoCordon, drain, attemptCount, maxAttempts } = node
  return status === 'up' && !isCordoned && autoCordon === null && drain === null && attemptCount < maxAttempts
}

/** Returns the VRAM that host memory can still cover: above C, all swappable tasks must fit in it at once. */
function hostFreeMib({ node, capacityMib, noswapMib, swappableMib }: GpuReading): Mib {
  return Math.max(capacityMib - noswapMib - swappableMib, node.hostSwapMib - swappableMib)
}

/**
 * Checks, when every decision is complete, that a node has a collector if its oldest return has waited long
 * and the tasks there could cover it.
 */
export function checkCollector(world: World, nodeIds: Iterable<string>, report: Report): void {
  const { cluster } = world.controller
  const now = world.clock.now()
  for (const nodeId of nodeIds) {
    const node = cluster.nodes.get(nodeId)
    if (node === undefined || node.collector !== null) continue
    const entry = node.queue.find((one) => shouldCollect(one, cluster, now))
    if (entry !== undefined)
      report('it has waited long and could be covered, but the node has no collector', {
        nodeId,
        taskId: entry.task.spec.id,
      })
  }
}

function shouldCollect(entry: EntryReading, cluster: ClusterReading, now: Instant): boolean {
  if (entry.kind !== 'swap_in' || entry.hasReserved || now - entry.askedAt < cluster.policy.swapInAgingMs)
    return false
  if ((entry.task.placement?.backOffUntil ?? 0) > now) return false
  return entry.gpus.every(
    (gpu) =>
      entry.needMib <= gpu.capacityMib - gpu.noswapMib &&
      missingMib(gpu, entry) <= swappableMibFor(gpu, entry),
  )
}

function missingMib(gpu: GpuReading, { needMib }: EntryReading): Mib {
  const owned = gpu.claimants.reduce((mib, owner) => mib + owner.needMib, 0)
  return (
    needMib - (gpu.capacityMib - gpu.noswapResidentMib - gpu.swappableResidentMib + gpu.movingOutMib - owned)
  )
}

function swappableMibFor(gpu: GpuReading, { task }: EntryReading): Mib {
  let mib = 0
  for (const { task: other, noswap, residency, demandMib, residualMib, startedAt } of gpu.placements) {
    const isFree = noswap === 0 && residency === 'resident' && other !== task && startedAt !== null
    if (isFree && (other.spec.priority !== 0 || task.spec.priority === 0)) mib += demandMib - residualMib
  }
  return mib
}
