/** Selects the decisions of a query; all stores use it. */
import type { Decision } from '../model/decision.ts'
import type { DecisionQuery } from '../ports/store.ts'

/** All tasks by which a decision is found: its subject and its victims. */
export function tasksOf({ taskId, victimIds }: Pick<Decision, 'taskId' | 'victimIds'>): ReadonlySet<string> {
  return new Set([taskId, ...victimIds])
}

export function isDecisionWanted(
  { afterNumber, beforeNumber, taskId, nodeId, kind }: DecisionQuery,
  decision: Decision,
): boolean {
  if (afterNumber !== null && decision.number <= afterNumber) return false
  if (afterNumber === null && beforeNumber !== null && decision.number >= beforeNumber) return false
  if (taskId !== null && !tasksOf(decision).has(taskId)) return false
  return (nodeId === null || decision.nodeId === nodeId) && (kind === null || decision.kind === kind)
}
