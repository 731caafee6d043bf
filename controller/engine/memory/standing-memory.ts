/** How the store compares with what the nodes have heard of, in its written form. */
import type { Instant } from '../../../protocol/units.ts'
import type { CancelTimer, TimerMark } from '../../ports/clock.ts'
import type { Cluster } from '../cluster.ts'
import { aheadNodes, blockedTasksOf } from '../node/contacts.ts'
import { endStartWait } from '../node/placement-pause.ts'
import type { StandingMemory } from './cluster-memory.ts'
import type { Marks } from './marks.ts'

export function noteStanding(c: Cluster, marks: Marks): StandingMemory {
  const { startWait, recovery } = c
  return {
    history: c.history.note(),
    contacts: [...c.contacts],
    heardOfLoss: [...c.heardOfLoss],
    startWait:
      startWait === null ? null : { awaited: [...startWait.awaited], timer: marks.timer(startWait.cancel) },
    recovery: recovery === null ? null : { ...recovery, awaited: [...recovery.awaited] },
    wasPaused: c.wasPaused,
    endedUnheard: [...c.endedUnheard],
  }
}

/** @param wake asks for a timer of the cluster's again */
export function recallStanding(
  c: Cluster,
  { history, contacts, heardOfLoss, startWait, recovery, wasPaused, endedUnheard }: StandingMemory,
  wake: (mark: TimerMark, fn: (now: Instant) => void) => CancelTimer,
): void {
  c.history.recall(history)
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
  for (const [taskId, attempt] of endedUnheard) c.endedUnheard.set(taskId, attempt)
}
