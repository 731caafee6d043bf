/** Which tasks may be swapped out (specification 8, rules 2 and 4; semantics 5). */
import type { AlwaysRule, RuleContext } from './always-rule.ts'
import { eligibleOn, ineligibility, swapDecisionOf } from './swap-decision.ts'

/** `noswap_never_swapped`: neither by a decision nor by an order, nor on the servers. */
export function noswapNeverSwapped({ shadow, observed, report }: RuleContext): AlwaysRule {
  /** Tasks whose attempt was reported and may have been swapped out then: it returns once. */
  const returning = new Set<string>()
  return {
    before({ kind, taskId, nodeId, data }) {
      const residency = data['residency']
      // Its server swapped it out, and then the store lost the permission for this.
      if (kind === 'task_placed' && data['when'] === 'reported') returning.add(taskId ?? '')
      if (residency === 'resident') returning.delete(taskId ?? '')
      if (returning.has(taskId ?? '')) return
      if (
        kind !== 'task_residency' ||
        taskId === null ||
        (residency !== 'swapping_out' && residency !== 'swapped_out')
      )
        return
      if (shadow.tasks.get(taskId)?.request.noswap === 1)
        report(`it is noswap, and ${residency}`, { taskId, nodeId: nodeId ?? '' })
    },
    afterStep(nodeIds) {
      for (const nodeId of nodeIds) {
        for (const [taskId, { noswap, residency }] of observed.attemptsOn(nodeId)) {
          const isAway =
            residency === 'swapping_out' || residency === 'swapped_out' || residency === 'swapping_in'
          if (noswap === 1 && isAway && !returning.has(taskId))
            report(`on its server it is noswap, and ${residency}`, { taskId, nodeId })
        }
      }
    },
  }
}

/**
 * `idle_rule`: every victim was idle for the idle period (inclusive), or resident for
 * `max_residency_seconds`, and was swapped out by a decision.
 */
export function idleRule({ shadow, observed, report }: RuleContext): AlwaysRule {
  let announced = new Set<string>()
  return {
    before(event) {
      const { kind, taskId, nodeId, data } = event
      const decision = swapDecisionOf(event, shadow)
      if (decision !== null) {
        const isJudged = observed.faults?.isDisturbed(decision.node.id) !== true
        for (const { id } of decision.victims) {
          announced.add(id)
          if (!isJudged) continue
          const victim = shadow.tasks.get(id)
          const why =
            victim === undefined ? 'it is unknown' : ineligibility(victim, decision, shadow, observed)
          if (why !== null)
            report(`it is swapped out for ${decision.requester.id}, but ${why}`, {
              taskId: id,
              nodeId: decision.node.id,
            })
        }
      }
      const isForAnother =
        kind === 'task_residency' &&
        data['residency'] === 'swapping_out' &&
        String(data['because']).startsWith('for ')
      if (isForAnother && taskId !== null && !announced.has(taskId))
        report('no decision swaps it out', { taskId, nodeId: nodeId ?? '' })
    },
    afterStep() {
      announced = new Set()
    },
  }
}

/** `p0_rule`: a P0 victim only for a P0 task, and only if no eligible task of another class was left. */
export function p0Rule({ shadow, observed, report }: RuleContext): AlwaysRule {
  return {
    before(event) {
      const decision = swapDecisionOf(event, shadow)
      if (decision === null) return
      const chosen = new Set(decision.victims.map((victim) => victim.id))
      for (const { id, gpu } of decision.victims) {
        if (shadow.tasks.get(id)?.request.priority !== 0) continue
        const place = { taskId: id, nodeId: decision.node.id }
        if (decision.requester.request.priority !== 0)
          report(`it is P0, and swapped out for ${decision.requester.id}, which is not`, place)
        if (observed.faults?.isDisturbed(decision.node.id) === true) continue
        const left = eligibleOn(gpu, decision, shadow, observed).filter(
          (task) => task.request.priority !== 0 && !chosen.has(task.id),
        )
        if (left.length > 0)
          report(
            `it is P0, and swapped out before ${left.map((task) => task.id).join(', ')} of GPU ${gpu}`,
            place,
          )
      }
    },
  }
}
