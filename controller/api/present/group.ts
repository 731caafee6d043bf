import type { Group } from '../../domain/group.ts'
import type { Node } from '../../domain/node.ts'
import { byCodeUnits, firstDifference } from '../../domain/order.ts'
import { effectiveSchedulableMib } from '../../domain/vram.ts'
import type { Views } from '../../engine/views.ts'
import type { GroupBody, GroupSumsBody } from '../schema/group.ts'

/** Nodes that are named with a group; the others are counted. */
const NAMED = 8

export function presentGroup(group: Group, views: Pick<Views, 'node'>): GroupBody {
  const members = group.nodeIds.flatMap((id) => views.node(id) ?? [])
  return {
    id: group.id,
    description: group.description,
    node_ids: group.nodeIds,
    sums: presentSums(members),
    first_nodes: members
      .toSorted(byName)
      .slice(0, NAMED)
      .map(({ id, name }) => ({ node_id: id, name })),
  }
}

/** 1. Name. 2. Id. */
const byName = firstDifference<Node>(
  (a, b) => byCodeUnits(a.name, b.name),
  (a, b) => byCodeUnits(a.id, b.id),
)

/** Over all GPUs of these nodes. */
export function presentSums(nodes: readonly Node[]): GroupSumsBody {
  const sums = { nodes: nodes.length, nodes_up: 0, gpus: 0, physical_mib: 0, committed_mib: 0, effective_schedulable_mib: 0 }
  for (const { status, gpus } of nodes) {
    sums.nodes_up += status === 'up' ? 1 : 0
    sums.gpus += gpus.length
    for (const gpu of gpus) {
      sums.physical_mib += gpu.physicalMib
      sums.committed_mib += gpu.noswapMib + gpu.swappableMib
      sums.effective_schedulable_mib += effectiveSchedulableMib(gpu.physicalMib, gpu.overcommitPercent)
    }
  }
  return sums
}
