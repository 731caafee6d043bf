/** Rules for attempts that run although the store has lost them (safety section 2; docs/decisions/0083). */
import type { Event } from '../../controller/model/event.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import { nodeIdOf } from '../../protocol/subjects.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { AlwaysRule, RuleContext } from './always-rule.ts'
import type { LostAttempt } from './lost-attempts.ts'
import type { NodeMessage } from './node-messages.ts'

/**
 * `lost_attempts_kept`: no later controller orders the end of a lost attempt, except when an operator asks
 * for it (`attempts stop`), or when its task has ended or continued with a later attempt.
 */
export function lostAttemptsKept({ shadow, witnesses, observed, report }: RuleContext): AlwaysRule {
  if (observed.faults === null || witnesses === null) return {}
  /** Tasks that the store knew, or that were placed since. */
  const latest = new Map<string, number>()
  const ended = new Set<string>()
  const hasGoneOn = ({ taskId, attempt }: LostAttempt): boolean =>
    ended.has(taskId) || (latest.get(taskId) ?? 0) > attempt
  const isKept = (one: LostAttempt): boolean => shadow.history.isLost(one) && !hasGoneOn(one)
  observed.faults.watchBus({
    delivered(subject, { body, controller }, from) {
      if (from !== null || body.op !== 'stop' || !witnesses.isPresent(controller)) return
      const one = { nodeId: nodeIdOf(subject) ?? '', taskId: body.task_id, attempt: body.attempt }
      if (isKept(one)) report(`attempt ${one.attempt}, which the store has lost, is ordered to end`, one)
    },
    answered({ body: asked }, { body, controller }) {
      if (
        (body.op !== 'lease' && body.op !== 'welcome') ||
        !('node_id' in asked) ||
        !witnesses.isPresent(controller)
      )
        return
      for (const { task_id: taskId, attempt } of body.stop) {
        const one = { nodeId: asked.node_id ?? '', taskId, attempt }
        if (isKept(one)) report(`attempt ${attempt}, which the store has lost, is ended`, one)
      }
    },
  })
  return {
    before({ kind, taskId, nodeId, data }) {
      if (kind === 'task_finished' && taskId !== null) ended.add(taskId)
      if (kind === 'task_placed' && taskId !== null) latest.set(taskId, data['attempt'] as number)
      if (kind !== 'attempt_settled' || data['how'] !== 'stopped_unknown') return
      const one = { nodeId: nodeId ?? '', taskId: String(data['task']), attempt: data['attempt'] as number }
      if (isKept(one)) report(`attempt ${one.attempt}, which the store has lost, is stopped as unknown`, one)
    },
    setBack({ stored }) {
      ended.clear()
      latest.clear()
      for (const { id, attempt } of stored.openTasks) latest.set(id, attempt)
    },
  }
}

/**
 * Time between the message of a node and the event with the outcome: a commit on a slow disk, and its
 * retries.
 */
const SETTLED_WITHIN_MS: DurationMs = 90_000

/**
 * `lost_attempts_settled`: once an operator has accepted the loss, an attempt that its node reports in a
 * hello is quarantined, or becomes the attempt of its task if that is pending.
 */
export function lostAttemptsSettled({ shadow, witnesses, observed, report }: RuleContext): AlwaysRule {
  const { faults } = observed
  if (faults === null || witnesses === null) return {}
  /** Reported, and neither in quarantine nor the attempt of a task. */
  const open = new Map<string, { readonly one: LostAttempt; readonly since: Instant }>()
  const isOpen = (one: LostAttempt): boolean =>
    shadow.history.isLost(one) && !shadow.history.isQuarantined(one)
  /** A heartbeat of a node that cannot hear the controller, and so never says hello, settles nothing. */
  const isHeard = ({ body, controller }: Envelope): boolean =>
    body.op === 'hello' || witnesses.isPresent(controller)
  const look = ({ nodeId, message, isAhead }: NodeMessage): void => {
    const { body } = message
    if (isAhead || !('tasks' in body)) return
    for (const { task_id: taskId, attempt } of body.tasks) {
      const one = { nodeId, taskId, attempt }
      const key = `${nodeId}/${taskId}/${attempt}`
      const since = open.get(key)?.since
      if (!isOpen(one)) open.delete(key)
      else if (since === undefined) {
        if (isHeard(message)) open.set(key, { one, since: observed.now() })
      } else if (observed.now() > since + SETTLED_WITHIN_MS) {
        report(`attempt ${attempt}, which the store has lost, is neither in quarantine nor its task's`, one)
        open.set(key, { one, since: Infinity })
      }
    }
  }
  const quarantined = (event: Event): void => {
    const taskId = String(event.data['task'])
    const task = shadow.tasks.get(taskId)
    const one = { nodeId: event.nodeId ?? '', taskId, attempt: event.data['attempt'] as number }
    if (task !== undefined && task.placement === null && shadow.history.isLost(one))
      report(`attempt ${one.attempt} is quarantined although its task is pending`, one)
  }
  faults.onControllerBegun(() => open.clear())
  witnesses.listen(look)
  return {
    before(event) {
      if (event.kind === 'attempt_quarantined') quarantined(event)
    },
  }
}
