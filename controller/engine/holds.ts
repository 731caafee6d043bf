/**
 * Holds: what keeps small tasks from starving a large one. The head of a pool that has waited `reservation_after_seconds` holds the GPUs
 * where it misses the least (semantics 4), an old entry of a node's queue holds its own (semantics 5).
 */
import type { Instant, Mib } from '../../protocol/units.ts'
import { isPlaceable, commitRoomMib, largestEverMib } from '../scheduler/feasible.ts'
import type { Queued } from '../scheduler/queue.ts'
import { byQueueOrder } from '../scheduler/queue.ts'
import { byGpuId } from '../scheduler/score.ts'
import { searchDemandMib } from '../scheduler/shape.ts'
import type { Cluster } from './cluster.ts'
import type { LiveEntry, LiveGpu, LiveNode, LiveTask } from './live.ts'
import { askForPlacement, dropEntry } from './entries.ts'
import { isBehindP0Only } from './node-queue.ts'
import type { Pool } from './pool.ts'

/** What a pool's head holds at present. */
export interface PoolHold {
  readonly task: LiveTask
  readonly gpus: readonly LiveGpu[]
  /** What it misses on the worst of them when it was last looked at. */
  readonly missingMib: Mib
  readonly poolVersion: number
}

/** Brings every pool's hold up to date; answers the next instant at which time alone gives a head one. */
export function updatePoolHolds(c: Cluster, now: Instant): Instant | null {
  if (c.policy.strategy === 'fifo' || c.pendingCount === 0) {
    for (const pool of [...c.poolHolds.keys()]) release(c, pool)
    return null
  }
  const holders = new Map<Pool, Queued>()
  let nextAt: Instant | null = null
  for (const queue of c.queues) {
    if (queue.size === 0) continue
    for (const head of queue.classHeads(queue.pool.largestEverMib(queue.shape))) {
      const at = head.task.pendingSince + c.policy.reservationAfterMs
      const other = holders.get(queue.pool)
      if (at > now) nextAt = nextAt === null ? at : Math.min(nextAt, at)
      else if (other === undefined || byQueueOrder(head, other) < 0) holders.set(queue.pool, head)
    }
  }
  for (const pool of [...c.poolHolds.keys()]) if (!holders.has(pool)) release(c, pool)
  for (const [pool, holder] of holders) renew(c, pool, holder)
  return nextAt
}

/** The aged entries of one node hold their GPUs; the others do not. */
export function updateEntryHolds(c: Cluster, node: LiveNode, now: Instant): void {
  const holding = new Set<LiveEntry>()
  for (const entry of node.queue) {
    if (entry.owns || entry.kind === 'placement' || now - entry.askedAt < c.policy.reservationAfterMs) continue
    if (!isBehindP0Only(entry)) holding.add(entry)
  }
  for (const gpu of node.gpus) {
    const wanted = [...holding].filter((entry) => entry.gpus.includes(gpu))
    const present = gpu.holds.filter((hold) => hold.task.placement !== null)
    const isSame = present.length === wanted.length && wanted.every((entry, i) => present[i]?.task === entry.task)
    if (isSame) continue
    const others = gpu.holds.filter((hold) => hold.task.placement === null)
    const fresh = wanted.map((entry) => ({
      task: entry.task,
      queueClass: entry.task.spec.priority,
      mib: entry.needMib,
      isExclusive: false,
    }))
    gpu.holds = [...fresh, ...others]
    c.touchGpu(gpu)
  }
}

function renew(c: Cluster, pool: Pool, holder: Queued): void {
  const task = holder.task as LiveTask
  const present = c.poolHolds.get(pool)
  if (present?.task === task && present.poolVersion === pool.version) return
  const best = leastMissing(pool, task)
  if (present !== undefined && present.task === task && present.gpus.every((gpu) => pool.nodes.has(gpu.node) && isPlaceable(gpu.node))) {
    const missingMib = missingOn(present.gpus, task)
    if (best === null || missingMib <= best.missingMib) {
      standInQueue(c, task, present.gpus, missingMib)
      c.poolHolds.set(pool, { ...present, missingMib, poolVersion: pool.version })
      return
    }
  }
  release(c, pool)
  if (best === null) return
  const hold = { task, queueClass: holder.queueClass, mib: searchDemandMib(task.spec), isExclusive: task.spec.gpuMode === 'exclusive' }
  for (const gpu of best.gpus) {
    gpu.holds = [...gpu.holds, hold]
    c.touchGpu(gpu)
  }
  standInQueue(c, task, best.gpus, best.missingMib)
  c.poolHolds.set(pool, { task, ...best, poolVersion: pool.version })
}

/** Where only bytes are missing, the head stands in the node's queue too, so that it may become the collector there. */
function standInQueue(c: Cluster, task: LiveTask, gpus: readonly LiveGpu[], missingMib: Mib): void {
  if (missingMib === 0 && task.spec.gpuMode === 'shared' && task.claim === null) askForPlacement(c, task, gpus, task.spec.vramMib)
}

function release(c: Cluster, pool: Pool): void {
  const hold = c.poolHolds.get(pool)
  if (hold === undefined) return
  c.poolHolds.delete(pool)
  for (const gpu of hold.gpus) {
    gpu.holds = gpu.holds.filter((each) => each.task !== hold.task)
    c.touchGpu(gpu)
  }
  if (hold.task.claim !== null && !hold.task.claim.owns) dropEntry(c, hold.task.claim)
}

/** The node, and its GPUs, where the task misses the least: the pool yields nodes in that order. */
function leastMissing(pool: Pool, task: LiveTask): { gpus: readonly LiveGpu[]; missingMib: Mib } | null {
  for (const node of pool.nearestNodes(task.spec)) {
    const gpus = nearestOnNode(node, task)
    if (gpus !== null) return { gpus, missingMib: missingOn(gpus, task) }
  }
  return null
}

function nearestOnNode(node: LiveNode, task: LiveTask): readonly LiveGpu[] | null {
  if (!isPlaceable(node)) return null
  const demand = searchDemandMib(task.spec)
  const gpus = node.gpus
    .filter((gpu) => largestEverMib(gpu) >= demand)
    .sort((a, b) => missesMib(a, task) - missesMib(b, task) || b.freeMib - a.freeMib || byGpuId(a, b))
    .slice(0, task.spec.gpuCount)
  return gpus.length === task.spec.gpuCount ? gpus : null
}

/** Of several GPUs, what the one that misses most does: the task starts on all or none. */
function missingOn(gpus: readonly LiveGpu[], task: LiveTask): Mib {
  return gpus.reduce((most, gpu) => Math.max(most, missesMib(gpu, task)), 0)
}

/** Commit room it misses; an exclusive task misses all that is placed (semantics 4). */
function missesMib(gpu: LiveGpu, task: LiveTask): Mib {
  if (task.spec.gpuMode === 'exclusive') return gpu.noswapMib + gpu.swappableMib
  return Math.max(0, searchDemandMib(task.spec) - commitRoomMib(gpu))
}
