/** `sometimes`: an event that happens at least once, so that no scenario passes by doing nothing. */
import type { Event } from '../../controller/model/event.ts'
import type { Instant } from '../../protocol/units.ts'
import type { SometimesName } from '../scenario/assertions.ts'
import type { RuleContext } from './always-rule.ts'
import type { Shadow, ShadowTask } from './shadow.ts'
import { swapDecisionOf } from './swap-decision.ts'

export class Occurrence {
  readonly #name: SometimesName
  readonly #context: RuleContext
  #hasHappened = false

  constructor(name: SometimesName, context: RuleContext) {
    this.#name = name
    this.#context = context
  }

  /** The shadow state does not include the event yet. */
  before(event: Event): void {
    if (!this.#hasHappened) this.#hasHappened = happensIn(this.#name, event, this.#context.shadow)
  }

  /** The run is over. */
  finish(now: Instant): void {
    const { shadow, report } = this.#context
    if (this.#name === 'controller_restarted')
      this.#hasHappened = (this.#context.observed.faults?.controllersBegun() ?? 1) > 1
    const waits = (task: ShadowTask): boolean => isWaiting(this.#name, task, shadow, now)
    if (!this.#hasHappened && ![...shadow.tasks.values()].some(waits)) report('it has never happened')
  }
}

function happensIn(name: SometimesName, event: Event, shadow: Shadow): boolean {
  const { kind, taskId, data, at } = event
  const task = shadow.tasks.get(taskId ?? '')
  switch (name) {
    case 'swap_out':
      return (
        kind === 'task_residency' &&
        data['residency'] === 'swapped_out' &&
        task?.placement?.residency === 'swapping_out'
      )
    case 'swap_in':
      return (
        kind === 'task_residency' &&
        data['residency'] === 'resident' &&
        task?.placement?.residency === 'swapping_in'
      )
    case 'p0_preempts_p0': {
      const decision = swapDecisionOf(event, shadow)
      return (
        decision !== null &&
        decision.requester.request.priority === 0 &&
        decision.victims.some((victim) => victim.class === 'p0' || victim.class === 'p0_warm')
      )
    }
    case 'multi_gpu_placed':
      return kind === 'task_placed' && (data['gpus'] as readonly number[]).length > 1
    case 'node_suspect':
      return kind === 'node_status' && data['status'] === 'suspect'
    case 'node_unreachable':
      return kind === 'node_status' && data['status'] === 'unreachable'
    case 'node_returned':
      return kind === 'node_status' && data['status'] === 'up' && shadow.silentNodes.has(event.nodeId ?? '')
    case 'store_behind':
      return kind === name && data['is_behind'] === true
    case 'store_recovered':
      return kind === 'recovery' && data['is_on'] === false
    case 'attempt_reattached':
      return kind === 'task_placed' && data['when'] === 'reported'
    case 'result_unknown':
      return kind === 'task_finished' && data['code'] === name
    case 'attempt_quarantined':
    case 'task_unreachable':
    case 'task_reachable':
    case 'growth_granted':
    case 'growth_refused':
    case 'duplicate_node':
      return kind === name
    case 'task_requeued':
      return kind === 'task_returned'
    case 'start_unconfirmed':
      return kind === 'task_returned' && data['reason'] === 'start_unconfirmed'
    case 'task_lost':
      return kind === 'task_finished' && data['state'] === 'lost'
    case 'task_failed':
      return kind === 'task_finished' && data['state'] === 'failed'
    case 'swap_refused':
      return kind === 'swap_failed'
    case 'requeues_frozen':
      return kind === 'requeue_freeze' && data['is_frozen'] === true
    case 'controller_restarted':
      return false
    case 'task_waits':
    case 'reservation':
      return (
        (kind === 'task_placed' || kind === 'task_finished') &&
        task !== undefined &&
        isWaiting(name, task, shadow, at)
      )
  }
}

/** A feasible task waits long enough to reserve GPUs (semantics 4; strict `fifo` needs no reservation). */
function isWaiting(name: SometimesName, task: ShadowTask, shadow: Shadow, now: Instant): boolean {
  if (task.placement !== null || !shadow.isFeasible(task)) return false
  const waitedMs = now - task.pendingSince
  if (name === 'task_waits') return waitedMs > 0
  const { placement_strategy: strategy, reservation_after_seconds: afterS } = shadow.config
  return name === 'reservation' && strategy !== 'fifo' && waitedMs >= afterS * 1000
}
