/**
 * Checks that preparing commits nothing (docs/decisions/0122): while a node prepares a task, no GPU of any
 * node counts VRAM for it, resident, swappable or noswap, reserves some, or runs the attempt.
 */
import { isBeingPrepared } from '../../../controller/model/preparation.ts'
import type { Task } from '../../../controller/model/placement.ts'
import type { GpuReading } from '../../../controller/query/cluster-reading.ts'
import type { Report } from '../../check/violation.ts'
import type { World } from '../../world/world.ts'

export function checkPreparing({ controller: { cluster }, fleet }: World, report: Report): void {
  const nodes = [...cluster.nodes.values()]
  if (nodes.every(({ preparationCount }) => preparationCount === 0)) return
  const preparing = new Set<Task>([...cluster.tasks.values()].filter(isBeingPrepared))
  for (const { spec, state, placement, placementEntry, queue, preparations } of cluster.tasks.values()) {
    if (!isBeingPrepared({ preparations })) continue
    if (state !== 'pending' || placement !== null || placementEntry !== null || queue !== null)
      report('it is being prepared, and is placed, has an entry for VRAM or is in its queue', {
        taskId: spec.id,
      })
    for (const { nodeId, attempt } of preparations)
      if (fleet.servers.get(nodeId)?.attempts.get(spec.id)?.attempt === attempt)
        report(`attempt ${attempt} of it is being prepared, and runs`, { taskId: spec.id, nodeId })
  }
  for (const node of nodes)
    for (const gpu of node.gpus)
      for (const task of holdersOf(gpu))
        if (preparing.has(task))
          report(`GPU ${gpu.index} counts or reserves VRAM for it while it is being prepared`, {
            taskId: task.spec.id,
            nodeId: node.id,
          })
}

function* holdersOf({ placements, pendingClaimants, reservations }: GpuReading): Generator<Task> {
  for (const { task } of [...placements, ...pendingClaimants, ...reservations]) yield task
}
