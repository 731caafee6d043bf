import type { GroupPreview, NodeSum, TaskSum } from '../../query/preview/group-preview.ts'
import type { Prediction } from '../../query/preview/prediction.ts'
import type { GroupPreviewBody, PlacementPreviewBody } from './preview-schema.ts'
import { presentWait } from './present-wait.ts'

export function presentPrediction({
  when,
  node,
  gpus,
  demandMib,
  victims,
  wait,
}: Prediction): PlacementPreviewBody {
  return {
    dry_run: true,
    starts: when ?? 'later',
    placement:
      node === null
        ? null
        : {
            node_id: node.id,
            node_name: node.name,
            gpus: gpus.map((gpu) => gpu.index),
            demand_mib: demandMib,
          },
    victims: victims.map(({ task: { spec }, gpu, mib }) => ({
      task_id: spec.id,
      name: spec.name,
      owner: spec.owner,
      priority: spec.priority,
      gpu,
      mib,
    })),
    wait: presentWait(wait),
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
