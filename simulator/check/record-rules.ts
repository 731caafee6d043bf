/** What is told, and never taken back: the chain of events, and how tasks have ended. */
import type { AlwaysRule, RuleContext } from './always-rule.ts'

/**
 * `event_chain`: numbers 1, 2, 3, … without a gap, time never falls, and a cause comes before what it caused.
 */
export function eventChain({ report }: RuleContext): AlwaysRule {
  let seq = 0
  let at = -Infinity
  return {
    before(event) {
      const place = {
        ...(event.taskId === null ? {} : { taskId: event.taskId }),
        ...(event.nodeId === null ? {} : { nodeId: event.nodeId }),
      }
      if (event.seq !== seq + 1) report(`event ${event.seq} follows event ${seq}`, place)
      if (event.at < at) report(`event ${event.seq} is of an earlier instant than the one before`, place)
      if (event.causedBy !== null && event.causedBy >= event.seq)
        report(`event ${event.seq} is caused by ${event.causedBy}, which comes later`, place)
      seq = event.seq
      at = event.at
    },
  }
}

/**
 * `finals_never_change`: of a task that has ended nothing more is told; and an attempt's number only grows.
 */
export function finalsNeverChange({ report }: RuleContext): AlwaysRule {
  const ended = new Map<string, string>()
  const attempts = new Map<string, number>()
  return {
    before({ kind, taskId, data }) {
      if (taskId === null) return
      const final = ended.get(taskId)
      if (final !== undefined) report(`it was ${final}, and then came ${kind}`, { taskId })
      if (kind === 'task_finished') ended.set(taskId, String(data['state']))
      if (kind !== 'task_placed') return
      const attempt = data['attempt'] as number
      const before = attempts.get(taskId) ?? 0
      if (attempt <= before) report(`attempt ${attempt} follows attempt ${before}`, { taskId })
      attempts.set(taskId, attempt)
    },
  }
}
