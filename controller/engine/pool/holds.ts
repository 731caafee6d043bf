/**
 * Holds: what keeps small tasks from starving a large one. The head of a pool that has waited
 * `reservation_after_seconds` holds the GPUs where it misses the least (semantics 4), an old entry of a
 * node's queue holds its own (semantics 5).
 */
import type { Instant, Mib } from '../../../protocol/units.ts'
import type { Hold } from '../../domain/node.ts'
import { isClosedTo, isPlaceable, largestEverMib, nearnessMib } from '../../scheduler/feasible.ts'
import type { Queued } from '../../scheduler/queue.ts'
import { byQueueOrder } from '../../scheduler/queue.ts'
import { byGpuId } from '../../scheduler/score.ts'
import { missesOnlyBytes } from '../../scheduler/schedule.ts'
import { kindOf, searchDemandMib } from '../../scheduler/shape.ts'
import type { Cluster } from '../cluster.ts'
import type { EntryHold, LiveEntry, LiveGpu, LiveNode, LiveTask } from '../live.ts'
import { askForPlacement, dropEntry } from '../node/entries.ts'
import { isBehindP0Only } from '../node/entry-obstacles.ts'
import type { Pool } from './pool.ts'

/** What a pool's head holds at present. */
export interface PoolHold {
  readonly task: LiveTask
  readonly hold: Hold
  readonly gpus: readonly LiveGpu[]
  /** What it misses on the worst of them when it was last looked at. */
  readonly missingMib: Mib
  readonly nearVersion: number
}

/**
 * Brings every pool's hold up to date; answers the next instant at which time alone gives a head one. Nothing
 * is looked at again while no queue, no node's nearness, nothing that a head misses where it holds and no
 * head's age has changed.
 */
export function updatePoolHolds(c: Cluster, now: Instant): Instant | null {
  let isSameMissing = true
  for (const { task, gpus, missingMib } of c.poolHolds.values()) {
    // Bytes alone may be missing from now on where something else was, or its own change took it out of the
    // node's queue.
    standInQueue(c, task, gpus)
    isSameMissing &&= missingOn(gpus, task) === missingMib
  }
  const last = c.holdsLook
  let changes = c.queueChanges
  for (const pool of c.pools.values()) changes += pool.nearVersion
  if (isSameMissing && last.changes === changes && (last.nextAt === null || now < last.nextAt))
    return last.nextAt
  const nextAt = renewAll(c, now)
  // Renewing may itself create an index of nearness and queue entries: what counts is the state it leaves.
  changes = c.queueChanges
  for (const pool of c.pools.values()) changes += pool.nearVersion
  c.holdsLook = { changes, nextAt }
  return nextAt
}

function renewAll(c: Cluster, now: Instant): Instant | null {
  if (c.policy.strategy === 'fifo' || c.pendingCount === 0) {
    releaseAllBut(c, null)
    return null
  }
  let holders: Map<Pool, Queued> | null = null
  let nextAt: Instant | null = null
  for (const queue of c.queues) {
    if (queue.size === 0) continue
    for (const head of queue.classHeads(queue.pool.largestEverMib(queue.shape))) {
      const at = head.task.pendingSince + c.policy.reservationAfterMs
      if (at > now) {
        nextAt = nextAt === null ? at : Math.min(nextAt, at)
        continue
      }
      holders ??= new Map()
      const other = holders.get(queue.pool)
      if (other === undefined || byQueueOrder(head, other) < 0) holders.set(queue.pool, head)
    }
  }
  releaseAllBut(c, holders)
  if (holders !== null) for (const [pool, holder] of holders) renew(c, pool, holder)
  return nextAt
}

function releaseAllBut(c: Cluster, holders: ReadonlyMap<Pool, Queued> | null): void {
  if (c.poolHolds.size === 0) return
  for (const pool of [...c.poolHolds.keys()]) if (holders?.has(pool) !== true) release(c, pool)
}

/** The aged entries of one node hold their GPUs; the others do not. */
export function updateEntryHolds(c: Cluster, node: LiveNode, now: Instant): void {
  let holding = NOBODY
  for (const entry of node.queue) {
    if (entry.owns || entry.kind === 'placement' || now - entry.askedAt < c.policy.reservationAfterMs)
      continue
    if (isBehindP0Only(entry)) continue
    if (holding === NOBODY) holding = [entry]
    else holding.push(entry)
  }
  if (holding === NOBODY && !node.hasEntryHolds) return
  node.hasEntryHolds = holding.length > 0
  if (holding.length > 0 && isAsBefore(node.entryHolds, holding)) return
  node.entryHolds = holding.map((entry) => ({ entry, hold: entryHold(entry) }))
  for (const gpu of node.gpus) {
    if (isHeldBy(gpu, holding)) continue
    const holds: Hold[] = []
    for (const entry of holding) if (entry.gpus.includes(gpu)) holds.push(entryHold(entry))
    for (const hold of gpu.holds) if (hold.by === 'head') holds.push(hold)
    setHolds(c, gpu, holds)
  }
}

/** Never pushed to. */
const NOBODY: LiveEntry[] = []

/** Do the same entries hold as much as when their GPUs were told? Nobody else changes these holds. */
function isAsBefore(before: readonly EntryHold[], holding: readonly LiveEntry[]): boolean {
  if (before.length !== holding.length) return false
  for (let at = 0; at < holding.length; at++) {
    const { entry, hold } = before[at] as EntryHold
    if (entry !== holding[at] || hold.mib !== entry.needMib || hold.queueClass !== entry.task.spec.priority)
      return false
  }
  return true
}

/** Are these entries, as far as they are on this GPU, and no others those that hold it, in this order? */
function isHeldBy(gpu: LiveGpu, holding: readonly LiveEntry[]): boolean {
  let at = 0
  for (const entry of holding) {
    if (!entry.gpus.includes(gpu)) continue
    while (gpu.holds[at]?.by === 'head') at += 1
    const hold = gpu.holds[at++]
    if (
      hold?.task !== entry.task ||
      hold.queueClass !== entry.task.spec.priority ||
      hold.mib !== entry.needMib
    )
      return false
  }
  for (; at < gpu.holds.length; at++) if (gpu.holds[at]?.by === 'entry') return false
  return true
}

function entryHold({ task, needMib }: LiveEntry): Hold {
  return { by: 'entry', task, queueClass: task.spec.priority, mib: needMib, isExclusive: false }
}

function renew(c: Cluster, pool: Pool, holder: Queued): void {
  const task = holder.task as LiveTask
  const hold = headHold(holder)
  const present = c.poolHolds.get(pool)
  const isSame = present !== undefined && isSameHold(present.hold, hold)
  if (
    isSame &&
    present.nearVersion === pool.nearVersion &&
    missingOn(present.gpus, task) === present.missingMib
  )
    return
  const best = leastMissing(pool, task)
  if (isSame && present.gpus.every((gpu) => pool.nodes.has(gpu.node) && isPlaceable(gpu.node))) {
    const missingMib = missingOn(present.gpus, task)
    if (best === null || missingMib <= best.missingMib) {
      standInQueue(c, task, present.gpus)
      c.poolHolds.set(pool, { ...present, missingMib, nearVersion: pool.nearVersion })
      return
    }
  }
  release(c, pool)
  if (best === null) return
  for (const gpu of best.gpus) setHolds(c, gpu, [...gpu.holds, hold])
  standInQueue(c, task, best.gpus)
  c.poolHolds.set(pool, { task, hold, ...best, nearVersion: pool.nearVersion })
}

function headHold({ task, queueClass }: Queued): Hold {
  return {
    by: 'head',
    task,
    queueClass,
    mib: searchDemandMib(task.spec),
    isExclusive: task.spec.gpuMode === 'exclusive',
  }
}

/** Its class may rise with its wait, and both may be changed while it waits. */
function isSameHold(a: Hold | undefined, b: Hold): boolean {
  return a?.task === b.task && a.queueClass === b.queueClass && a.mib === b.mib
}

/**
 * Where only bytes are missing, the head stands in the node's queue too, so that it may become the collector
 * there.
 */
function standInQueue(c: Cluster, task: LiveTask, gpus: readonly LiveGpu[]): void {
  if (task.claim === null && missesOnlyBytes(task, gpus, c.policy.maxTasksPerGpu))
    askForPlacement(c, task, gpus, task.spec.vramMib)
}

function release(c: Cluster, pool: Pool): void {
  const hold = c.poolHolds.get(pool)
  if (hold === undefined) return
  c.poolHolds.delete(pool)
  for (const gpu of hold.gpus) {
    const holds: Hold[] = []
    for (const each of gpu.holds) if (each !== hold.hold) holds.push(each)
    setHolds(c, gpu, holds)
  }
  if (hold.task.claim !== null && !hold.task.claim.owns) dropEntry(c, hold.task.claim)
}

/**
 * Who may use the GPU changes, whatever it admits: blocked queues look again where somebody holds less than
 * before. Lists of holds are filled by pushing: those that are filtered or spread are, empty or not, up to
 * four kinds of arrays, and each new one gives up the code compiled for the others.
 */
export function setHolds(c: Cluster, gpu: LiveGpu, holds: Hold[]): void {
  const isLess = gpu.holds.some((hold) => !holds.some((other) => holdsAsMuch(other, hold)))
  gpu.holds = holds
  if (isLess) for (const pool of gpu.node.pools) pool.version += 1
  c.touchGpu(gpu)
}

/** Whoever had to leave room for the one has to leave as much for the other. */
function holdsAsMuch(other: Hold, hold: Hold): boolean {
  return (
    other === hold ||
    (other.task === hold.task &&
      other.queueClass === hold.queueClass &&
      other.mib >= hold.mib &&
      other.isExclusive === hold.isExclusive)
  )
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
  if (!isPlaceable(node) || isClosedTo(task, node)) return null
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

/** An exclusive task misses all that is placed, whatever its demand (semantics 4). */
function missesMib(gpu: LiveGpu, task: LiveTask): Mib {
  const kind = kindOf(task.spec)
  const demandMib = kind === 'exclusive' ? 0 : searchDemandMib(task.spec)
  return Math.max(0, demandMib - nearnessMib(gpu, kind))
}
