import type { Prediction } from '../../query/preview/prediction.ts'
import type { PlacementPreviewBody } from './preview-schema.ts'
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
