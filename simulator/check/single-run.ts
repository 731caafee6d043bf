/**
 * `single_run`: no two attempts of one task alive at once, on whatever server. Where things break one that is frozen may still be there; it does
 * not run, and never will again before the controller has answered its server.
 */
import type { AlwaysRule, RuleContext } from './always-rule.ts'

export function singleRun({ shadow, observed, report }: RuleContext): AlwaysRule {
  const { faults } = observed
  const aliveOn = (taskId: string): readonly string[] =>
    faults?.runsOn(taskId) ?? observed.nodes.filter((node) => observed.attemptsOn(node.id).has(taskId)).map((node) => node.name)
  return {
    before({ kind, taskId, nodeId }) {
      if (kind !== 'task_placed' || taskId === null) return
      const placement = shadow.tasks.get(taskId)?.placement ?? null
      if (placement !== null)
        report(`it is placed again while attempt ${placement.attempt} has its place`, { taskId, nodeId: placement.nodeId })
      const alive = aliveOn(taskId)
      if (alive.length > 0 && nodeId !== null)
        report(`it is placed while an attempt of it lives on ${alive.join(' and ')}`, { taskId, nodeId })
    },
    afterStep(_nodeIds, taskIds) {
      if (faults !== null) return
      for (const taskId of taskIds) {
        const alive = aliveOn(taskId)
        if (alive.length > 1) report(`attempts of it live on ${alive.join(' and ')} at once`, { taskId })
      }
    },
    afterEveryStep() {
      for (const { taskId, nodes } of faults?.takeDoubles() ?? []) report(`it runs on ${nodes.join(' and ')} at once`, { taskId })
    },
  }
}
