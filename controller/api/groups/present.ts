import type { GroupPreview, NodeSum, TaskSum } from '../../query/preview/group-preview.ts'
import type { Group } from '../../model/group.ts'
import type { Node } from '../../model/placement.ts'
import { byCodeUnits, firstDifference } from '../../structures/order.ts'
import type { Views } from '../../query/views.ts'
import type { GroupBody, GroupPreviewBody, GroupSumsBody } from './schema.ts'
import { vramOfNodes } from '../nodes/present-vram.ts'

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
  const { physical_mib, committed_mib, effective_schedulable_mib } = vramOfNodes(nodes)
  return {
    nodes: nodes.length,
    nodes_up: nodes.filter(({ status }) => status === 'up').length,
    gpus: nodes.reduce((sum, { gpus }) => sum + gpus.length, 0),
    physical_mib,
    committed_mib,
    effective_schedulable_mib,
  }
}

export function presentGroupPreview(preview: GroupPreview): GroupPreviewBody {
  return {
    joining: presentNodes(preview.joining),
    leaving: presentNodes(preview.leaving),
    leaves_common_pool: presentNodes(preview.leavesCommonPool),
    returns_to_common_pool: presentNodes(preview.returnsToCommonPool),
    finishing: presentTasks(preview.finishing),
    become_feasible: presentTasks(preview.becomeFeasible),
    become_infeasible: presentTasks(preview.becomeInfeasible),
  }
}

function presentNodes({
  nodes,
  nodeIds,
  gpus,
  physicalMib,
  effectiveSchedulableMib,
}: NodeSum): GroupPreviewBody['joining'] {
  return {
    nodes,
    node_ids: nodeIds,
    gpus,
    physical_mib: physicalMib,
    effective_schedulable_mib: effectiveSchedulableMib,
  }
}

function presentTasks({ tasks, taskIds }: TaskSum): GroupPreviewBody['finishing'] {
  return { tasks, task_ids: taskIds }
}
