/**
 * A clone of the live cluster on which functions of the engine can be tried: restored from records like after
 * a restart, then completed with state that records lack: node status, reserved VRAM, and for which entry
 * each victim leaves. The live cluster is only read.
 */
import type { Instant } from '../../../protocol/units.ts'
import type { Config } from '../../model/config.ts'
import { Cluster } from '../../state/cluster.ts'
import type { Overrides } from '../../engine/inputs/commands/cluster-commands.ts'
import { askForPlacement, askForSwapIn, reserveVram } from '../../engine/apply/lifecycle/entries.ts'
import { setReservations } from '../../engine/apply/vram/reservations.ts'
import type { LiveEntry, LiveGpu, LiveNode, LivePlacement, LiveTask, PoolReservation } from '../../state/facts.ts'
import type { Pool } from '../../state/index/pool.ts'
import { NO_HISTORY } from '../../ports/store.ts'
import { restore } from '../../engine/recovery.ts'
import { recordOfNode, recordOfTask } from '../../state/records.ts'

/** Settings that apply in the clone. */
export interface CloneSettings {
  readonly config: Config
  readonly overridesOf: (node: LiveNode) => Overrides
}

export function cloneCluster(c: Cluster, { config, overridesOf }: CloneSettings, now: Instant): Cluster {
  const clone = new Cluster(config, now, () => NOTHING_TO_CANCEL)
  clone.eventLog.isForgetful = true
  if (c.owners !== null) clone.limitOwners(c.owners.limits)
  restore(clone, stateOf(c, overridesOf), now)
  for (const node of c.nodes.values()) copyNode(clone, node)
  for (const task of c.tasks.values()) copyTask(clone, task, now)
  for (const node of c.nodes.values()) copyQueue(clone, node)
  for (const task of c.tasks.values()) if (task.placement !== null) copyLeaving(clone, task.placement)
  for (const [pool, held] of c.poolReservations) copyReservation(clone, pool, held)
  return clone
}

const NOTHING_TO_CANCEL = (): void => {}

function stateOf(c: Cluster, overridesOf: CloneSettings['overridesOf']): Parameters<typeof restore>[1] {
  return {
    openTasks: Array.from(c.tasks.values(), recordOfTask),
    nodes: Array.from(c.nodes.values(), (node) => {
      const { overcommitOverride, reserveOverrideMib } = overridesOf(node)
      return { ...recordOfNode(node), overcommitOverride, reserveOverrideMib, drain: null }
    }),
    groups: [...c.groups.values()],
    config: null,
    tokens: [],
    lastAuditSeq: 0,
    submissionKeys: [],
    ...NO_HISTORY,
    marks: { epoch: 0, nextTaskSeq: c.nextTaskSeq, nextEventSeq: 1, nextDecision: c.eventLog.nextDecision },
    finishedCounts: c.finished,
  }
}

function copyNode(clone: Cluster, node: LiveNode): void {
  const copy = nodeIn(clone, node)
  copy.status = node.status
  copy.drain = node.drain
  copy.snapshotSeq = node.snapshotSeq
  copy.otherAttempts = node.otherAttempts
  copy.attemptCount += node.otherAttempts.length
  for (const gpu of copy.gpus) clone.touchGpu(gpu)
  clone.waiting.isFeasibilityStale = true
}

function copyTask(clone: Cluster, task: LiveTask, now: Instant): void {
  const copy = taskIn(clone, task)
  if (task.refusedBy !== null) {
    copy.refusedBy = task.refusedBy
    clone.refusedTasks.add(copy)
  }
  if (copy.queue !== null && copy.queueClass !== task.queueClass) clone.requeue(copy, now)
}

/** Copies entries in their order of arrival, and their reservations. */
function copyQueue(clone: Cluster, node: LiveNode): void {
  const copies = node.queue.map((entry) => entryIn(clone, entry))
  const copy = nodeIn(clone, node)
  copy.queue.sort((a, b) => copies.indexOf(a) - copies.indexOf(b))
  node.queue.forEach((entry, place) => {
    const entryCopy = copies[place] as LiveEntry
    if (entry.hasReserved) reserveVram(clone, entryCopy)
    if (!entry.isCollector) return
    entryCopy.isCollector = true
    copy.collector = entryCopy
    clone.collecting.add(copy)
  })
  // The order of claimants decides whose reservation counts first.
  node.gpus.forEach(({ claimants }, index) => {
    const place = new Map(claimants.map(({ task }, at) => [task.spec.id, at]))
    const byPlace = (a: LiveEntry, b: LiveEntry): number =>
      (place.get(a.task.spec.id) ?? 0) - (place.get(b.task.spec.id) ?? 0)
    const gpu = copy.gpus[index] as LiveGpu
    gpu.claimants.sort(byPlace)
    clone.touchGpu(gpu)
  })
}

/** Restoring a cluster requests growths and returns again; the entry of a placement is created here. */
function entryIn(clone: Cluster, { kind, task, gpus, needMib, askedAt }: LiveEntry): LiveEntry {
  const copy = taskIn(clone, task)
  if (kind === 'placement') return askForPlacement(clone, copy, gpusIn(clone, gpus), needMib)
  if (copy.placement !== null && kind === 'swap_in') askForSwapIn(clone, copy.placement, askedAt)
  const entry = copy.placement?.entry ?? null
  if (entry === null)
    throw new Error(`broken invariant: task ${task.spec.id} waits for bytes, and its copy does not`)
  entry.askedAt = askedAt
  entry.needMib = needMib
  return entry
}

function copyLeaving(clone: Cluster, { task, leavesFor }: LivePlacement): void {
  const copy = taskIn(clone, task).placement
  if (copy === null || leavesFor === null) return
  const { task: goingIn, kind } = leavesFor
  const taskCopy = taskIn(clone, goingIn)
  copy.leavesFor = kind === 'placement' ? taskCopy.placementEntry : (taskCopy.placement?.entry ?? null)
  for (const gpu of copy.gpus) clone.touchGpu(gpu)
}

/** A head keeps the GPUs it has reserved unless others have a smaller shortfall. */
function copyReservation(
  clone: Cluster,
  { key }: Pool,
  { task, reservation, gpus, missingMib }: PoolReservation,
): void {
  const copy = { ...reservation, task: taskIn(clone, task) }
  const gpuCopies = gpusIn(clone, gpus)
  for (const gpu of gpuCopies) setReservations(clone, gpu, [...gpu.reservations, copy])
  clone.poolReservations.set(clone.poolFor(key), {
    task: copy.task,
    reservation: copy,
    gpus: gpuCopies,
    missingMib,
    shortfallVersion: NEVER_LOOKED,
  })
}

const NEVER_LOOKED = -1

function nodeIn(clone: Cluster, { id }: LiveNode): LiveNode {
  const node = clone.nodes.get(id)
  if (node === undefined) throw new Error(`broken invariant: the copy has no node ${id}`)
  return node
}

function taskIn(clone: Cluster, { spec: { id } }: LiveTask): LiveTask {
  const task = clone.tasks.get(id)
  if (task === undefined) throw new Error(`broken invariant: the copy has no task ${id}`)
  return task
}

function gpusIn(clone: Cluster, gpus: readonly LiveGpu[]): readonly LiveGpu[] {
  return gpus.map(({ node, index }) => nodeIn(clone, node).gpus[index] as LiveGpu)
}
