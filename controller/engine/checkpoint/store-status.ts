import type { Instant } from '../../../protocol/units.ts'
import type { CancelTimer, TimerId } from '../../ports/clock.ts'
import type { Cluster } from '../../state/cluster.ts'
import { aheadNodes, blockedTasksOf } from '../inputs/nodes/contacts.ts'
import { endStartWait } from '../../state/placement-pause.ts'
import type { StoreStatusCheckpoint } from './cluster-checkpoint.ts'
import type { PendingIds } from './pending-ids.ts'

export function captureStoreStatus(c: Cluster, ids: PendingIds): StoreStatusCheckpoint {
  const { startWait, recovery } = c
  return {
    history: c.history.capture(),
    contacts: [...c.contacts],
    heardOfLoss: [...c.heardOfLoss],
    startWait:
      startWait === null ? null : { awaited: [...startWait.awaited], timer: ids.timer(startWait.cancel) },
    recovery: recovery === null ? null : { ...recovery, awaited: [...recovery.awaited] },
    wasPaused: c.wasPaused,
    endedUnconfirmed: [...c.endedUnconfirmed],
  }
}

/** @param wake sets a timer of the cluster again */
export function restoreStoreStatus(
  c: Cluster,
  { history, contacts, heardOfLoss, startWait, recovery, wasPaused, endedUnconfirmed }: StoreStatusCheckpoint,
  wake: (id: TimerId, fn: (now: Instant) => void) => CancelTimer,
): void {
  c.history.restore(history)
  for (const [nodeId, ahead] of contacts) c.contacts.set(nodeId, ahead)
  c.aheadCount = contacts.filter(([, ahead]) => ahead !== null).length
  c.isStoreBehind = 2 * c.aheadCount > c.contacts.size
  if (aheadNodes(c).length > 0) c.blockedTasks = blockedTasksOf(c)
  for (const nodeId of heardOfLoss) c.heardOfLoss.add(nodeId)
  if (startWait !== null) {
    c.startWait = {
      awaited: new Set(startWait.awaited),
      cancel: wake(startWait.timer, () => endStartWait(c)),
    }
  }
  if (recovery !== null) c.recovery = { ...recovery, awaited: new Set(recovery.awaited) }
  c.wasPaused = wasPaused
  for (const [taskId, attempt] of endedUnconfirmed) c.endedUnconfirmed.set(taskId, attempt)
}
