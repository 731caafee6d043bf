/**
 * Entries of a node's queue: joining, reserving and releasing VRAM. `node-queue.ts` decides what an entry
 * gets.
 */
import { movableMib } from '../../../model/placement.ts'
import type { Instant, Mib } from '../../../../protocol/units.ts'
import type { EntryKind } from '../../../model/placement.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { addPendingClaimant, removePendingClaimant } from '../../../state/gpu-ledger.ts'
import type { LiveEntry, LiveGpu, LivePlacement, LiveTask } from '../../../state/facts.ts'

/** Requests the return of a swapped-out task that wants the GPU. */
export function askForSwapIn(c: Cluster, placement: LivePlacement, now: Instant): void {
  const { entry: before, task, gpus } = placement
  const needMib = movableMib(placement)
  if (before?.needMib === needMib) return
  if (before !== null) dropEntry(c, before)
  placement.entry = join(c, 'swap_in', task, gpus, needMib, before?.askedAt ?? now)
}

/**
 * The server holds an allocation that would take the task to `mib` per GPU. A task that is not resident
 * returns first.
 */
export function askForGrowth(c: Cluster, placement: LivePlacement, mib: Mib, now: Instant): void {
  placement.heldGrowth = { mib, askedAt: now }
  c.eventLog.dirtyTask(placement.task)
  if (placement.residency === 'resident') resumeGrowth(c, placement)
  else if (placement.residency === 'swapped_out') askForSwapIn(c, placement, now)
}

/** Requests the held allocation of a resident task, unless its demand covers it by now. */
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
 * Adds a pending task to the node's queue: with VRAM reserved while victims leave, or waiting to become the
 * collector. Its GPUs are ordered by index, the order in which several shortages are covered (semantics 5).
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

/** Removes the entry from the queue and releases its reservation. */
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

/** Reserves VRAM for the entry. Returns true if it was not reserved before. */
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

/** Releases the reservation on all GPUs; the entry stays in the queue. */
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
