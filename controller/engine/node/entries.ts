/**
 * Entries of a node's queue: who joins, who owns bytes, who lets go. What an entry gets is decided in
 * `node-queue.ts`.
 */
import type { Instant, Mib } from '../../../protocol/units.ts'
import type { EntryKind } from '../../domain/task.ts'
import type { Cluster } from '../cluster.ts'
import { addPendingClaimant, removePendingClaimant } from '../gpu-ledger.ts'
import type { LiveEntry, LiveGpu, LivePlacement, LiveTask } from '../live.ts'

/** A swapped-out task wants the GPU: its return is asked for. */
export function askForSwapIn(c: Cluster, placement: LivePlacement, now: Instant): void {
  if (placement.entry !== null) return
  placement.entry = join(c, 'swap_in', placement.task, placement.gpus, placement.demandMib, now)
}

/**
 * The server holds an allocation that would take the task to `mib` per GPU. One that is not resident has to
 * return for it first.
 */
export function askForGrowth(c: Cluster, placement: LivePlacement, mib: Mib, now: Instant): void {
  placement.heldGrowth = { mib, askedAt: now }
  c.eventLog.dirtyTask(placement.task)
  if (placement.residency === 'resident') resumeGrowth(c, placement)
  else if (placement.residency === 'swapped_out') askForSwapIn(c, placement, now)
}

/** The task is resident: what the server holds for it is asked for, unless its demand covers that by now. */
export function resumeGrowth(c: Cluster, placement: LivePlacement): void {
  const held = placement.heldGrowth
  if (held === null) return
  if (placement.entry !== null) dropEntry(c, placement.entry)
  if (held.mib <= placement.demandMib) placement.heldGrowth = null
  else
    placement.entry = join(
      c,
      'growth',
      placement.task,
      placement.gpus,
      held.mib - placement.demandMib,
      held.askedAt,
    )
}

/**
 * A pending task stands in the node's queue: owning its bytes while victims leave, or waiting there to become
 * the collector. Its GPUs are in the order of their indexes, in which several that are short are covered
 * (semantics 5).
 */
export function askForPlacement(
  c: Cluster,
  task: LiveTask,
  gpus: readonly LiveGpu[],
  demandMib: Mib,
): LiveEntry {
  if (task.placementEntry !== null) dropEntry(c, task.placementEntry)
  const byIndex = [...gpus].sort((a, b) => a.index - b.index)
  task.placementEntry = join(c, 'placement', task, byIndex, demandMib, task.spec.submittedAt)
  return task.placementEntry
}

/** The entry lets go of everything and leaves the queue. */
export function dropEntry(c: Cluster, entry: LiveEntry): void {
  const queue = entry.node.queue
  const at = queue.indexOf(entry)
  if (at < 0) return
  queue.splice(at, 1)
  c.queuedEntries -= 1
  releaseVram(c, entry)
  if (entry.task.placementEntry === entry) entry.task.placementEntry = null
  const placement = entry.task.placement
  if (placement?.entry === entry) placement.entry = null
  c.touchNode(entry.node)
  c.eagerChecks.add(entry.node)
}

/** From now on its bytes are its own. Says whether that is new. */
export function reserveVram(c: Cluster, entry: LiveEntry): boolean {
  if (entry.hasReserved) return false
  entry.hasReserved = true
  for (const gpu of entry.gpus) {
    gpu.claimants.push(entry)
    if (entry.kind === 'placement') addPendingClaimant(gpu, entry)
    c.touchGpu(gpu)
  }
  if (entry.kind === 'placement') {
    c.dequeue(entry.task)
    c.countPlaced(entry.task, 1)
  }
  return true
}

/** It owns nothing any more, at once, on all its GPUs; it stays in the queue. */
export function releaseVram(c: Cluster, entry: LiveEntry): void {
  if (entry.isCollector) {
    entry.isCollector = false
    entry.node.collector = null
    c.collecting.delete(entry.node)
  }
  if (!entry.hasReserved) return
  entry.hasReserved = false
  if (entry.kind === 'placement') c.countPlaced(entry.task, -1)
  for (const gpu of entry.gpus) {
    gpu.claimants.splice(gpu.claimants.indexOf(entry), 1)
    if (entry.kind === 'placement') removePendingClaimant(gpu, entry)
    for (const leaving of gpu.placements) if (leaving.leavesFor === entry) leaving.leavesFor = null
    c.touchGpu(gpu)
  }
}

function join(
  c: Cluster,
  kind: EntryKind,
  task: LiveTask,
  gpus: readonly LiveGpu[],
  needMib: Mib,
  askedAt: Instant,
): LiveEntry {
  const node = (gpus[0] as LiveGpu).node
  const entry: LiveEntry = {
    kind,
    task,
    node,
    gpus,
    needMib,
    askedAt,
    hasReserved: false,
    isCollector: false,
    failedAttempt: null,
  }
  node.queue.push(entry)
  c.queuedEntries += 1
  c.touchNode(node)
  return entry
}
