/**
 * `group_isolation`: a task with target groups is placed only on nodes of these groups; a task without, only
 * on nodes without groups.
 */
import type { AlwaysRule, RuleContext } from './always-rule.ts'

export function groupIsolation({ shadow, report }: RuleContext): AlwaysRule {
  return {
    before({ kind, taskId, nodeId, data }) {
      if (kind !== 'task_placed' || data['when'] === 'reported' || taskId === null || nodeId === null) return
      const node = shadow.nodes.get(nodeId)
      const request = shadow.tasks.get(taskId)?.request
      if (node === undefined || request === undefined || shadow.isOpenTo(node, request)) return
      const groups = [...shadow.groups].filter(([, members]) => members.has(nodeId)).map(([group]) => group)
      report(`it targets ${namesOf(request.groups)}, the node belongs to ${namesOf(groups)}`, {
        taskId,
        nodeId,
      })
    },
  }
}

function namesOf(groups: readonly string[]): string {
  return groups.length === 0 ? 'no group' : groups.join(', ')
}
