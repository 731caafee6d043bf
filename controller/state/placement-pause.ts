/**
 * While the store may lack a part of its history nothing is placed, requeued or given up: after each start
 * until the nodes that were up are heard, in recovery, and when most nodes say that the store went back to
 * an earlier state (docs/protocol.md, "A store that went back to an earlier state").
 */
import type { PauseReason } from '../model/controller-status.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { NodeRecord } from '../ports/store.ts'
import type { Cluster } from './cluster.ts'

/** Longest wait for nodes after a start. */
const START_WAIT_MS: DurationMs = 15_000

/** The state that determines whether placements are paused. */
export type PauseState = Pick<Cluster, 'isStoreBehind' | 'recovery' | 'startWait'>

export function pauseOf(c: PauseState): PauseReason | null {
  if (c.isStoreBehind) return 'STORE_BEHIND'
  if (c.recovery !== null) return 'RECOVERY'
  return c.startWait === null ? null : 'AWAITING_NODES'
}

/** After a start. Records that are older than the field `status` count as up. */
export function beginStartWait(c: Cluster, nodes: readonly NodeRecord[], now: Instant): void {
  const awaited = new Set(nodes.filter(({ status = 'up' }) => status === 'up').map(({ id }) => id))
  if (awaited.size > 0) c.startWait = { awaited, cancel: c.wake(now + START_WAIT_MS, () => endStartWait(c)) }
}

export function endStartWait(c: Cluster): void {
  c.startWait?.cancel()
  c.startWait = null
  c.queueChanges += 1
}

/** Returns true if attempts of this node that the store does not know may be stopped. */
export function isHistoryComplete(c: Cluster, nodeId: string): boolean {
  return c.aheadCount === 0 && !lacksHistoryOf(c, nodeId)
}

/** The node may have heard of something that a restore or an accepted loss has taken from the store. */
export function lacksHistoryOf(c: Cluster, nodeId: string): boolean {
  return c.recovery !== null || c.heardOfLoss.has(nodeId)
}

/** Returns true while the report of the node may show that the store lacks a part of its history. */
export function isReportAwaited(c: Cluster, nodeId: string): boolean {
  const isAwaited = c.recovery?.awaited.has(nodeId) === true || c.startWait?.awaited.has(nodeId) === true
  return isAwaited || (c.contacts.get(nodeId) ?? null) !== null
}

/** The node has reported its attempts, or was removed. */
export function hasSpoken(c: Cluster, nodeId: string): void {
  if (c.startWait !== null && c.startWait.awaited.delete(nodeId) && c.startWait.awaited.size === 0)
    endStartWait(c)
  c.recovery?.awaited.delete(nodeId)
}
