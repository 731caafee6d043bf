/**
 * Nodes that refused a task's start are excluded for it (R3): until the node's next snapshot, or until an
 * attempt ends there. Both happen at the same instants with and without elided heartbeats. Refusals because
 * of the task itself, or of the host, last longer (safety 3).
 */
import type { Cluster } from '../../../state/cluster.ts'
import type { LiveNode, LiveTask } from '../../../state/facts.ts'

/** @param seq number of the refusing message or of its latest snapshot: a later snapshot lifts the refusal */
export function noteRefusal(c: Cluster, task: LiveTask, nodeId: string, seq: number): void {
  task.refusedBy = new Map(task.refusedBy ?? []).set(nodeId, seq)
  c.refusedTasks.add(task)
}

/** A snapshot of the node lifts earlier refusals. */
export function liftRefusalsBefore(c: Cluster, node: LiveNode, snapshotSeq: number): void {
  for (const task of c.refusedTasks)
    if ((task.refusedBy?.get(node.id) ?? Infinity) < snapshotSeq) liftRefusal(c, task, node.id)
}

/** An attempt ended on the node: refused tasks may fit now. */
export function liftRefusals(c: Cluster, node: LiveNode): void {
  for (const task of c.refusedTasks) if (!isResultAwaited(task, node)) liftRefusal(c, task, node.id)
}

/**
 * The node has announced the result of an earlier attempt of the task: until the result arrives it would
 * refuse another.
 */
function isResultAwaited({ givenUp }: LiveTask, node: LiveNode): boolean {
  return givenUp.some(({ nodeId, isOvertaken }) => nodeId === node.id && !isOvertaken)
}

export function liftRefusal(c: Cluster, task: LiveTask, nodeId: string): void {
  if (task.refusedBy?.has(nodeId) !== true) return
  const left = new Map(task.refusedBy)
  left.delete(nodeId)
  if (left.size === 0) forgetRefusals(c, task)
  else task.refusedBy = left
  if (task.queue === null) return
  task.queue.add(task)
  c.queueChanges += 1
}

/** The task runs, or has ended. */
export function forgetRefusals(c: Cluster, task: LiveTask): void {
  task.refusedBy = null
  c.refusedTasks.delete(task)
}
