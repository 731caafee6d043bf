/** Rules for what is final: the chain of events, and how tasks end. */
import type { AlwaysRule, RuleContext } from './always-rule.ts'

/** `event_chain`: event numbers have no gaps, times never decrease, and a cause comes before its effects. */
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
    setBack({ stored }) {
      seq = stored.marks.nextEventSeq - 1
    },
  }
}

/**
 * `finals_never_change`: a task that has ended has no more events, and attempt numbers only increase. An
 * attempt that the store has lost may have the number of one that it knew on another node.
 */
export function finalsNeverChange({ shadow, report }: RuleContext): AlwaysRule {
  const ended = new Map<string, { readonly state: string; readonly seq: number }>()
  const attempts = new Map<string, number>()
  return {
    before({ kind, taskId, nodeId, data, seq }) {
      if (taskId === null) return
      const final = ended.get(taskId)
      if (final !== undefined) report(`it was ${final.state}, and then came ${kind}`, { taskId })
      if (kind === 'task_finished') ended.set(taskId, { state: String(data['state']), seq })
      if (kind !== 'task_placed') return
      const attempt = data['attempt'] as number
      const before = attempts.get(taskId) ?? 0
      const isTwin =
        attempt === before &&
        data['when'] === 'reported' &&
        shadow.history.isLost({ nodeId: nodeId ?? '', taskId, attempt })
      if (attempt <= before && !isTwin) report(`attempt ${attempt} follows attempt ${before}`, { taskId })
      attempts.set(taskId, attempt)
    },
    // Lost ends and attempts no longer count.
    setBack({ stored }) {
      const known = new Map(stored.openTasks.map(({ id, attempt }) => [id, attempt]))
      for (const [taskId, { seq }] of ended)
        if (known.has(taskId) || seq >= stored.marks.nextEventSeq) ended.delete(taskId)
      for (const taskId of attempts.keys())
        if (!ended.has(taskId)) attempts.set(taskId, known.get(taskId) ?? 0)
    },
  }
}
