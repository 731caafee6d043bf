/**
 * The number of attempts that a server holds: the limit comes with its hello; the count is kept here and in
 * the ledger (R11).
 */
import type { AttemptRef } from '../../protocol/messages.ts'
import { hasAttemptRoom } from '../policy/placement/feasible.ts'
import type { Cluster } from './cluster.ts'
import type { LiveNode } from './facts.ts'
import { attemptKey } from './facts.ts'

export function setMaxAttempts(c: Cluster, node: LiveNode, maxAttempts: number): void {
  if (node.maxAttempts === maxAttempts) return
  node.maxAttempts = maxAttempts
  for (const gpu of node.gpus) c.touchGpu(gpu)
}

/**
 * Sets the attempts in a snapshot that are no task's current one. They count until the next snapshot or until
 * their end is reported.
 */
export function setOtherAttempts(c: Cluster, node: LiveNode, others: readonly AttemptRef[]): void {
  if (others.length === 0 && node.otherAttempts.length === 0) return
  changeOthers(
    c,
    node,
    others.map(({ task_id, attempt }) => attemptKey(task_id, attempt)),
  )
}

/** The end of an attempt that is no task's current one was reported. */
export function forgetOtherAttempt(c: Cluster, node: LiveNode, { task_id, attempt }: AttemptRef): void {
  const key = attemptKey(task_id, attempt)
  if (node.otherAttempts.includes(key))
    changeOthers(
      c,
      node,
      node.otherAttempts.filter((other) => other !== key),
    )
}

function changeOthers(c: Cluster, node: LiveNode, others: readonly string[]): void {
  const hadRoom = hasAttemptRoom(node)
  node.attemptCount += others.length - node.otherAttempts.length
  node.otherAttempts = others
  if (hasAttemptRoom(node) !== hadRoom) for (const gpu of node.gpus) c.touchGpu(gpu)
}
