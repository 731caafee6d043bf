/**
 * A copy of the live cluster on which the engine's own functions can be tried: made as a restart would make
 * it, from the records of its tasks and nodes, and then told what records do not say – who is up, who owns
 * bytes, who leaves for whom. The live cluster is only read.
 */
import type { Instant } from '../../../protocol/units.ts'
import type { Config } from '../../domain/config.ts'
import { Cluster } from '../cluster.ts'
import type { Overrides } from '../commands/cluster-commands.ts'
import { askForPlacement, askForSwapIn, own } from '../node/entries.ts'
import type { PoolHold } from '../pool/holds.ts'
import { setHolds } from '../pool/holds.ts'
import type { LiveEntry, LiveGpu, LiveNode, LivePlacement, LiveTask } from '../live.ts'
import type { Pool } from '../pool/pool.ts'
import { NO_HISTORY } from '../../ports/store.ts'
import { restore } from '../recovery.ts'
import { recordOfNode, recordOfTask } from '../records.ts'

/** What holds in the copy. */
export interface ForkSettings {
  readonly config: Config
  readonly overridesOf: (node: LiveNode) => Overrides
}

export function forkCluster(c: Cluster, { config, overridesOf }: ForkSettings, now: Instant): Cluster {
  const fork = new Cluster(config, now, () => NOTHING_TO_CANCEL)
  fork.recorder.isForgetful = true
  if (c.owners !== null) fork.limitOwners(c.owners.limits)
  restore(fork, stateOf(c, overridesOf), now)
  for (const node of c.nodes.values()) copyNode(fork, node)
  for (const task of c.tasks.values()) copyTask(fork, task, now)
  for (const node of c.nodes.values()) copyQueue(fork, node)
  for (const task of c.tasks.values()) if (task.placement !== null) copyLeaving(fork, task.placement)
  for (const [pool, held] of c.poolHolds) copyHold(fork, pool, held)
  return fork
}

const NOTHING_TO_CANCEL = (): void => {}

function stateOf(c: Cluster, overridesOf: ForkSettings['overridesOf']): Parameters<typeof restore>[1] {
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
    marks: { epoch: 0, nextTaskSeq: c.nextTaskSeq, nextEventSeq: 1, nextDecision: c.recorder.nextDecision },
    finishedCounts: c.finished,
  }
}

function copyNode(fork: Cluster, node: LiveNode): void {
  const copy = nodeIn(fork, node)
  copy.status = node.status
  copy.drain = node.drain
  copy.snapshotSeq = node.snapshotSeq
  copy.otherAttempts = node.otherAttempts
  copy.attemptCount += node.otherAttempts.length
  for (const gpu of copy.gpus) fork.touchGpu(gpu)
  fork.waiting.isFeasibilityStale = true
}

function copyTask(fork: Cluster, task: LiveTask, now: Instant): void {
  const copy = taskIn(fork, task)
  if (task.refusedBy !== null) {
    copy.refusedBy = task.refusedBy
    fork.refusedTasks.add(copy)
  }
  if (copy.queue !== null && copy.queueClass !== task.queueClass) fork.requeue(copy, now)
}

/** Entries in the order in which they came, and what they own. */
function copyQueue(fork: Cluster, node: LiveNode): void {
  const copies = node.queue.map((entry) => entryIn(fork, entry))
  const copy = nodeIn(fork, node)
  copy.queue.sort((a, b) => copies.indexOf(a) - copies.indexOf(b))
  node.queue.forEach((entry, place) => {
    const entryCopy = copies[place] as LiveEntry
    if (entry.owns) own(fork, entryCopy)
    if (!entry.isCollector) return
    entryCopy.isCollector = true
    copy.collector = entryCopy
    fork.collecting.add(copy)
  })
  // Whose bytes count before whose depends on who owned first.
  node.gpus.forEach(({ owners }, index) => {
    const place = new Map(owners.map(({ task }, at) => [task.spec.id, at]))
    const byPlace = (a: LiveEntry, b: LiveEntry): number =>
      (place.get(a.task.spec.id) ?? 0) - (place.get(b.task.spec.id) ?? 0)
    const gpu = copy.gpus[index] as LiveGpu
    gpu.owners.sort(byPlace)
    fork.touchGpu(gpu)
  })
}

/** Growths and returns ask again when a cluster is restored; a placement's entry is made anew. */
function entryIn(fork: Cluster, { kind, task, gpus, needMib, askedAt }: LiveEntry): LiveEntry {
  const copy = taskIn(fork, task)
  if (kind === 'placement') return askForPlacement(fork, copy, gpusIn(fork, gpus), needMib)
  if (copy.placement !== null && kind === 'swap_in') askForSwapIn(fork, copy.placement, askedAt)
  const entry = copy.placement?.entry ?? null
  if (entry === null)
    throw new Error(`broken invariant: task ${task.spec.id} waits for bytes, and its copy does not`)
  entry.askedAt = askedAt
  entry.needMib = needMib
  return entry
}

function copyLeaving(fork: Cluster, { task, leavesFor }: LivePlacement): void {
  const copy = taskIn(fork, task).placement
  if (copy === null || leavesFor === null) return
  const { task: goingIn, kind } = leavesFor
  const taskCopy = taskIn(fork, goingIn)
  copy.leavesFor = kind === 'placement' ? taskCopy.claim : (taskCopy.placement?.entry ?? null)
  for (const gpu of copy.gpus) fork.touchGpu(gpu)
}

/** A head keeps the GPUs that it holds unless others come nearer. */
function copyHold(fork: Cluster, { key }: Pool, { task, hold, gpus, missingMib }: PoolHold): void {
  const copy = { ...hold, task: taskIn(fork, task) }
  const gpuCopies = gpusIn(fork, gpus)
  for (const gpu of gpuCopies) setHolds(fork, gpu, [...gpu.holds, copy])
  fork.poolHolds.set(fork.poolFor(key), {
    task: copy.task,
    hold: copy,
    gpus: gpuCopies,
    missingMib,
    nearVersion: NEVER_LOOKED,
  })
}

const NEVER_LOOKED = -1

function nodeIn(fork: Cluster, { id }: LiveNode): LiveNode {
  const node = fork.nodes.get(id)
  if (node === undefined) throw new Error(`broken invariant: the copy has no node ${id}`)
  return node
}

function taskIn(fork: Cluster, { spec: { id } }: LiveTask): LiveTask {
  const task = fork.tasks.get(id)
  if (task === undefined) throw new Error(`broken invariant: the copy has no task ${id}`)
  return task
}

function gpusIn(fork: Cluster, gpus: readonly LiveGpu[]): readonly LiveGpu[] {
  return gpus.map(({ node, index }) => nodeIn(fork, node).gpus[index] as LiveGpu)
}
