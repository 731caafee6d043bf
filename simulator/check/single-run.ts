/**
 * `single_run`: at most one attempt of a task is alive at any time, on any server. With faults, a frozen
 * attempt may still exist: it does not run, and never will before the controller has answered its server. An
 * attempt on a node that an operator declared fenced counts as ended; the operator is responsible for that.
 * An attempt that the store has lost counts once its node has contacted the current controller: before that,
 * no controller can know of it.
 */
import type { AlwaysRule, RuleContext } from './always-rule.ts'

export function singleRun({ shadow, witnesses, observed, report }: RuleContext): AlwaysRule {
  const { faults } = observed
  /** By task: names of nodes that an operator declared fenced when requeuing it. */
  const fenced = new Map<string, Set<string>>()
  const nameOf = (nodeId: string | null): string => observed.nodes.find(({ id }) => id === nodeId)?.name ?? ''
  const isFenced = (taskId: string, node: string): boolean => fenced.get(taskId)?.has(node) === true
  const livesOn = (taskId: string): readonly string[] =>
    faults?.runsOn(taskId) ??
    observed.nodes.filter((node) => observed.attemptsOn(node.id).has(taskId)).map((node) => node.name)
  const aliveOn = (taskId: string): readonly string[] =>
    livesOn(taskId).filter((node) => !isFenced(taskId, node))
  /** Names of nodes that run an attempt of the task that the store has lost. */
  const lostOn = (taskId: string, isWanted: (nodeId: string) => boolean): ReadonlySet<string> => {
    const ids = shadow.history.nodesOf(taskId)
    return new Set(observed.nodes.filter(({ id }) => ids.has(id) && isWanted(id)).map(({ name }) => name))
  }
  return {
    before({ kind, taskId, nodeId, data }) {
      if (kind === 'task_returned' && taskId !== null && String(data['reason']).endsWith('fenced')) {
        fenced.set(taskId, new Set(fenced.get(taskId)).add(nameOf(nodeId)))
      }
      if (kind !== 'task_placed' || taskId === null) return
      const placement = shadow.tasks.get(taskId)?.placement ?? null
      if (placement !== null)
        report(`it is placed again while attempt ${placement.attempt} is still placed`, {
          taskId,
          nodeId: placement.nodeId,
        })
      const isReported = data['when'] === 'reported'
      const unknown = lostOn(taskId, (id) => isReported || witnesses?.hasSpoken(id) === false)
      // A reported attempt already runs there, also one that had ended as lost before the store went back.
      const taken = isReported ? nameOf(nodeId) : null
      const alive = aliveOn(taskId).filter((node) => node !== taken && !unknown.has(node))
      if (alive.length > 0 && nodeId !== null)
        report(`it is placed while an attempt of it runs on ${alive.join(' and ')}`, { taskId, nodeId })
    },
    afterStep(_nodeIds, taskIds) {
      if (faults !== null) return
      for (const taskId of taskIds) {
        const alive = aliveOn(taskId)
        if (alive.length > 1) report(`attempts of it run on ${alive.join(' and ')} at once`, { taskId })
      }
    },
    afterEveryStep() {
      for (const { taskId, nodes } of faults?.takeDoubles() ?? []) {
        const lost = lostOn(taskId, () => true)
        if (nodes.filter((node) => !isFenced(taskId, node) && !lost.has(node)).length > 1)
          report(`it runs on ${nodes.join(' and ')} at once`, { taskId })
      }
    },
  }
}
