/** Which pools a node is in, and which groups name it. */
import type { Group } from '../../model/group.ts'
import { byCodeUnits } from '../../structures/order.ts'
import { COMMON_POOL } from '../../policy/placement/shape.ts'

/** The common pool holds nodes of no group; a pool of groups holds the members of any of them. */
export function belongsTo(groups: readonly string[], poolKey: string): boolean {
  if (poolKey === COMMON_POOL) return groups.length === 0
  return poolKey.split('\n').some((group) => groups.includes(group))
}

/** Returns the groups that name this node, in code-unit order. */
export function groupsNaming(groups: Iterable<Group>, nodeId: string): readonly string[] {
  return [...groups]
    .filter((group) => group.nodeIds.includes(nodeId))
    .map((group) => group.id)
    .sort(byCodeUnits)
}
