/** Stops with a grace period (docs/protocol.md, "A stop"): they end in time, and are reported as stops. */
import type { DurationMs } from '../../../protocol/units.ts'
import type { Finding, Rule } from './rule.ts'
import type { Examiner } from './examiner.ts'
import { hasFinished, running, said, SOON_MS, stop, stopWithin } from './orders.ts'

const GRACE_MS: DurationMs = 3_000
const LONG_GRACE_MS: DurationMs = 3_600_000

export const STOP_RULES: readonly Rule[] = [
  {
    rule: 'Stop',
    claim:
      'a stop ends with its grace, a longer grace afterwards does not prolong it, and the end ' +
      'is reported as stopped',
    async examine(e) {
      const task = await running(e)
      if (typeof task === 'string') return task
      const first = await stopWithin(e, task.taskId, GRACE_MS)
      if (first?.outcome !== 'accepted') return `a stop with a grace was answered ${said(first)}`
      const again = await stopWithin(e, task.taskId, LONG_GRACE_MS)
      if (again === null || again.outcome === 'refused' || again.outcome === 'never_seen')
        return `the stop, sent again, was answered ${said(again)}`
      return endedAsStopped(e, task.taskId, GRACE_MS + SOON_MS)
    },
  },
  {
    rule: 'Stop',
    claim: 'a stop without a grace ends an attempt in the middle of one',
    async examine(e) {
      const task = await running(e)
      if (typeof task === 'string') return task
      const first = await stopWithin(e, task.taskId, LONG_GRACE_MS)
      if (first?.outcome !== 'accepted') return `a stop with a grace was answered ${said(first)}`
      const now = await stop(e, task.taskId, 1)
      if (now?.outcome !== 'accepted' && now?.outcome !== 'finished' && now?.outcome !== 'gone')
        return `the stop without a grace was answered ${said(now)}`
      return endedAsStopped(e, task.taskId, SOON_MS)
    },
  },
]

async function endedAsStopped(e: Examiner, taskId: string, withinMs: DurationMs): Promise<Finding> {
  const isOver = await e.until(() => hasFinished(e, taskId, 1), withinMs)
  if (!isOver) {
    await stop(e, taskId, 1)
    return `it was not reported as finished within ${withinMs / 1000} s`
  }
  const outcomes = e
    .eventsOf(taskId, 1)
    .flatMap((event) => (event.kind === 'finished' ? [event.outcome] : []))
  return outcomes.every((outcome) => outcome === 'stopped')
    ? null
    : `its end was reported as ${outcomes.join(', ')}`
}
