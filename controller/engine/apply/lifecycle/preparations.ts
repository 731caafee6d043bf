/**
 * Nodes that prepare tasks before their start. Soft state: a snapshot of the node decides, and what it no
 * longer names is asked for again (protocol, "Preparing").
 */
import type { AttemptRef, CommandResult, Heartbeat } from '../../../../protocol/messages.ts'
import type { PreparationReport } from '../../../../protocol/preparing.ts'
import type { Instant } from '../../../../protocol/units.ts'
import { mayQueue } from '../../../model/placement.ts'
import type { PrepareEffect } from '../../../model/effect.ts'
import { imageToRun } from '../../../model/image-to-run.ts'
import { isBeingPrepared, NO_PREPARATIONS, preparationOn } from '../../../model/preparation.ts'
import type { Preparation } from '../../../model/preparation.ts'
import { isPlaceable, mayRunOn } from '../../../policy/placement/feasible.ts'
import { mustPrepare } from '../../../policy/placement/prepare.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { LiveNode, LiveTask } from '../../../state/facts.ts'
import { dropEntry } from './entries.ts'
import { noteRefusal } from './refusals.ts'

/** The node would take the task now: it prepares it first, and the task leaves its queue until then. */
export function beginPreparing(c: Cluster, task: LiveTask, node: LiveNode, now: Instant): void {
  const attempt = task.attempt + 1
  leaveQueue(c, task)
  setPreparation(c, task, node, { ...newPreparation(node, attempt, now), state: 'asked' })
  c.eventLog.transaction.effects.push({
    kind: 'prepare',
    nodeId: node.id,
    taskId: task.spec.id,
    attempt,
    image: imageToRun(task),
    workdir: task.spec.workdir ?? null,
  })
}

/** Returns true while the node has not answered the command. */
export function isPreparationWanted(
  { nodeId, attempt }: PrepareEffect,
  task: Pick<LiveTask, 'preparations'> | undefined,
): boolean {
  const present = task === undefined ? null : preparationOn(task, nodeId)
  return present?.attempt === attempt && present.state === 'asked'
}

/** The answer to the command. A refusal says nothing about the task: the node is avoided for a while. */
export function applyPrepareAnswer(
  c: Cluster,
  nodeId: string,
  { task_id, attempt, outcome }: CommandResult,
  seq: number,
  now: Instant,
): void {
  const [task, node] = [c.tasks.get(task_id), c.nodes.get(nodeId)]
  const present = task === undefined ? null : preparationOn(task, nodeId)
  if (task === undefined || node === undefined || present?.state !== 'asked' || present.attempt !== attempt)
    return
  if (outcome === 'accepted') return setPreparation(c, task, node, { ...present, state: 'preparing', seq })
  noteRefusal(c, task, nodeId, Math.max(seq, node.snapshotSeq))
  dropPreparation(c, task, node, now)
}

export interface PreparingAnswer {
  /** Preparations that the node must end. */
  readonly stop: readonly AttemptRef[]
  readonly failed: readonly { readonly task: LiveTask; readonly report: PreparationReport }[]
}

/** Applies what a snapshot says about preparations, and about images of waiting tasks. */
export function applyPreparing(
  c: Cluster,
  node: LiveNode,
  { preparing = [], images = [] }: Pick<Heartbeat, 'preparing' | 'images'>,
  seq: number,
  now: Instant,
): PreparingAnswer {
  if (images.length > 0 || node.images.length > 0) node.images = images
  const known = c.preparingOn.get(node.id)
  if (preparing.length === 0 && known === undefined) return NOTHING_SAID
  const stop: AttemptRef[] = []
  const failed: PreparingAnswer['failed'][number][] = []
  const named = new Set<LiveTask>()
  for (const report of preparing) {
    const task = c.tasks.get(report.task_id)
    if (task !== undefined && applyReport(c, task, node, report, seq, now)) named.add(task)
    else if (!isStarting(task, node, report)) stop.push({ task_id: report.task_id, attempt: report.attempt })
    if (task !== undefined && named.has(task) && report.state === 'failed') {
      failed.push({ task, report })
      stop.push({ task_id: report.task_id, attempt: report.attempt })
    }
  }
  for (const task of [...(known ?? [])]) {
    const present = preparationOn(task, node.id)
    const isLost = !named.has(task) && present !== null && present.state !== 'asked' && present.seq < seq
    if (isLost) dropPreparation(c, task, node, now)
  }
  return { stop, failed }
}

const NOTHING_SAID: PreparingAnswer = { stop: [], failed: [] }

/** Returns false if it is not wanted. After a restart of this process the node's report is all there is. */
function applyReport(
  c: Cluster,
  task: LiveTask,
  node: LiveNode,
  report: PreparationReport,
  seq: number,
  now: Instant,
): boolean {
  const present = preparationOn(task, node.id)
  if (task.state !== 'pending' || report.attempt !== task.attempt + 1 || !isPlaceable(node)) return false
  if (present === null) {
    const isOpen = task.placementEntry === null && !isBeingPrepared(task)
    if (!isOpen || !mayRunOn(task, node) || !mustPrepare(task, node)) return false
    if (report.state === 'preparing') leaveQueue(c, task)
  }
  const state = report.state === 'prepared' ? 'prepared' : 'preparing'
  const { bytes_done: bytesDone, bytes_total: bytesTotal } = report
  const before = present ?? newPreparation(node, report.attempt, now)
  setPreparation(c, task, node, { ...before, state, seq, bytesDone, bytesTotal })
  if (state === 'prepared' && before.state !== 'prepared') joinQueue(c, task, now)
  return true
}

/** Its start is on its way, and uses what was prepared. */
function isStarting(task: LiveTask | undefined, node: LiveNode, { attempt }: PreparationReport): boolean {
  return task?.placement?.node === node && task.placement.attempt === attempt
}

/** The node no longer prepares it: the task is placed, or prepared elsewhere, in the usual order. */
export function dropPreparation(c: Cluster, task: LiveTask, node: LiveNode, now: Instant): void {
  removePreparation(c, task, node.id)
  joinQueue(c, task, now)
}

/** The node is silent or closed: it prepares nothing. */
export function dropPreparationsOn(c: Cluster, node: LiveNode, now: Instant): void {
  for (const task of [...(c.preparingOn.get(node.id) ?? [])]) dropPreparation(c, task, node, now)
}

/** The task is placed, has ended, or may run elsewhere; its nodes are told by the answers to snapshots. */
export function forgetPreparations(c: Cluster, task: LiveTask): void {
  for (const { nodeId } of task.preparations) removePreparation(c, task, nodeId)
}

/** @returns without a place in its queue */
function leaveQueue(c: Cluster, task: LiveTask): void {
  if (task.placementEntry !== null) dropEntry(c, task.placementEntry)
  c.dequeue(task)
}

function joinQueue(c: Cluster, task: LiveTask, now: Instant): void {
  if (task.state !== 'pending' || !mayQueue(task) || task.queue !== null || task.placementEntry !== null)
    return
  c.enqueue(task, now)
  c.waiting.begin(task, now)
}

function newPreparation(node: LiveNode, attempt: number, since: Instant): Preparation {
  const { id: nodeId, name: nodeName } = node
  return { nodeId, nodeName, attempt, state: 'preparing', seq: 0, since, bytesDone: 0, bytesTotal: null }
}

function setPreparation(c: Cluster, task: LiveTask, node: LiveNode, preparation: Preparation): void {
  const others = task.preparations.filter(({ nodeId }) => nodeId !== node.id)
  if (others.length === task.preparations.length) c.countPreparation(task, node.id, 1)
  task.preparations = [...others, preparation]
}

function removePreparation(c: Cluster, task: LiveTask, nodeId: string): void {
  const left = task.preparations.filter((each) => each.nodeId !== nodeId)
  if (left.length === task.preparations.length) return
  task.preparations = left.length === 0 ? NO_PREPARATIONS : left
  c.countPreparation(task, nodeId, -1)
}
