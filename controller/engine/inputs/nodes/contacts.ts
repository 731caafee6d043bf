/**
 * Nodes that were heard since the start, and what their marks say about this store. A controller whose store
 * lacks what a node has heard of sends that node nothing; if more than half of the nodes are ahead, it places
 * nothing.
 */
import type { AheadNode } from '../../../model/controller-status.ts'
import type { Envelope } from '../../../../protocol/envelope.ts'
import type { TaskReport } from '../../../../protocol/messages.ts'
import type { Instant } from '../../../../protocol/units.ts'
import { mayQueue } from '../../../model/placement.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { blockedTasksIn } from '../../../state/cluster.ts'
import type { NodeMark } from '../../../state/epoch-history.ts'
import type { BehindReason } from '../../../model/controller-status.ts'
import { dropEntry } from '../../apply/lifecycle/entries.ts'
import { setStatus } from './node-registry.ts'
import { hasSpoken } from '../../../state/placement-pause.ts'

/** The content of a message apart from its mark; `tasks` is null when the message does not list them. */
export interface NodeReport {
  readonly nodeId: string
  readonly name: string | null
  readonly tasks: readonly TaskReport[] | null
}

/** The knowledge of a node about controllers, and the message that reports it. */
export type StampedMark = NodeMark & Pick<Envelope, 'boot' | 'seq'>

/** Bounds the memory that senders with invented names can use. */
const MAX_CONTACTS = 20_000

/** The node has heard of nothing that the store lacks. */
export function noteContact(c: Cluster, nodeId: string, now: Instant): void {
  const before = c.contacts.get(nodeId)
  hasSpoken(c, nodeId)
  if (before === null || (before === undefined && c.contacts.size >= MAX_CONTACTS)) return
  c.contacts.set(nodeId, null)
  if (before !== undefined) {
    c.aheadCount -= 1
    emit(c, nodeId, before, false, now)
    blockTasks(c, now)
  }
  weigh(c, now)
}

/** The node has heard of more than the store has: it gets no answer. */
export function noteAhead(
  c: Cluster,
  { nodeId, name, tasks }: NodeReport,
  reason: BehindReason,
  { epoch, controller, event_seq: eventSeq = 0, boot, seq }: StampedMark,
  now: Instant,
): void {
  const before = c.contacts.get(nodeId)
  const node = c.nodes.get(nodeId)
  if (before === undefined && c.contacts.size >= MAX_CONTACTS) return
  const ahead: AheadNode = {
    name: name ?? node?.name ?? before?.name ?? null,
    reason,
    epoch,
    controller: controller ?? null,
    eventSeq,
    bootCounter: boot.counter,
    seq,
    since: before?.since ?? now,
    taskIds: tasks?.map(({ task_id }) => task_id) ?? before?.taskIds ?? [],
  }
  c.contacts.set(nodeId, ahead)
  if (tasks !== null) hasSpoken(c, nodeId)
  if (node?.status === 'up') setStatus(c, node, 'suspect', now)
  if (before === undefined || before === null) {
    c.aheadCount += 1
    emit(c, nodeId, ahead, true, now)
  }
  blockTasks(c, now)
  weigh(c, now)
}

/**
 * Records that the node has heard of something that a restore or an accepted loss has taken from the store.
 */
export function noteLossHeard(c: Cluster, nodeId: string): void {
  if (c.heardOfLoss.size < MAX_CONTACTS) c.heardOfLoss.add(nodeId)
}

/** The node was removed. */
export function forgetContact(c: Cluster, nodeId: string, now: Instant): void {
  const before = c.contacts.get(nodeId)
  c.contacts.delete(nodeId)
  hasSpoken(c, nodeId)
  if (before !== undefined && before !== null) {
    c.aheadCount -= 1
    blockTasks(c, now)
  }
  weigh(c, now)
}

/**
 * Returns true for a message of a node that is ahead, sent before it was: its mark says nothing about the
 * present, and an answer would replace the mark that the node has now. Only a later hello or heartbeat shows
 * that the node is no longer ahead.
 */
export function isFromBeforeAhead(
  c: Cluster,
  nodeId: string,
  { boot, seq, body }: Pick<Envelope, 'boot' | 'seq' | 'body'>,
): boolean {
  const ahead = aheadOf(c, nodeId)
  if (ahead === null || boot.counter > ahead.bootCounter) return false
  return body.op === 'events' || boot.counter < ahead.bootCounter || seq < ahead.seq
}

export function aheadOf(c: Cluster, nodeId: string): AheadNode | null {
  return c.aheadCount === 0 ? null : (c.contacts.get(nodeId) ?? null)
}

/** Nodes that have heard of more than the store has. */
export function aheadNodes(
  c: Pick<Cluster, 'contacts' | 'aheadCount'>,
): readonly (readonly [nodeId: string, ahead: AheadNode])[] {
  if (c.aheadCount === 0) return []
  const found: (readonly [string, AheadNode])[] = []
  for (const [nodeId, ahead] of c.contacts) if (ahead !== null) found.push([nodeId, ahead])
  return found
}

function weigh(c: Cluster, now: Instant): void {
  const isBehind = 2 * c.aheadCount > c.contacts.size
  if (isBehind === c.isStoreBehind) return
  c.isStoreBehind = isBehind
  c.queueChanges += 1
  if (isBehind) requeueReserved(c, now)
}

/** Returns placements with reserved VRAM that have not started to the queue. */
function requeueReserved(c: Cluster, now: Instant): void {
  for (const task of c.tasks.values()) {
    if (task.placementEntry === null) continue
    dropEntry(c, task.placementEntry)
    if (task.queue === null && !task.isHeld) c.enqueue(task, now)
  }
}

/** Keeps tasks with an attempt on a node that is ahead of the store from a second placement. */
function blockTasks(c: Cluster, now: Instant): void {
  const blocked = blockedTasksIn(c.contacts)
  const freed = [...c.blockedTasks].filter((id) => !blocked.has(id))
  c.blockedTasks = blocked
  for (const id of blocked) {
    const task = c.tasks.get(id)
    if (task?.state !== 'pending') continue
    if (task.placementEntry !== null) dropEntry(c, task.placementEntry)
    c.dequeue(task)
  }
  for (const id of freed) {
    const task = c.tasks.get(id)
    if (task?.state === 'pending' && task.queue === null && task.placementEntry === null && mayQueue(task))
      c.enqueue(task, now)
  }
}

function emit(c: Cluster, nodeId: string, ahead: AheadNode, isBehind: boolean, now: Instant): void {
  const { name, reason, epoch, eventSeq } = ahead
  const data = {
    alarm: isBehind ? 'STORE_BEHIND' : null,
    is_behind: isBehind,
    name,
    reason,
    node_epoch: epoch,
    node_event_seq: eventSeq,
  }
  c.eventLog.emit(now, 'store_behind', null, nodeId, null, data)
}
