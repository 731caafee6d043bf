/** A snapshot of a simulated world, with the exact remaining work of each task. */
import { workOf } from '../fleet/work-plan.ts'
import type { GpuModel } from '../scenario/scenario.ts'
import { idOfNode } from '../scenario/node-id.ts'
import { snapshotOf } from './snapshot.ts'
import type { Snapshot } from './snapshot.ts'
import type { World } from '../world/world.ts'

/** To be called between two steps of the clock, when the current instant is over. */
export function snapshotOfWorld(world: World): Snapshot {
  const models = new Map(world.plan.nodes.map((node) => [idOfNode(node), node.gpu]))
  const { workload } = world
  return snapshotOf(world.controller.views.snapshot(), {
    workLeftOf: ({ id, placement, command }) => {
      const left =
        placement === null ? null : (world.fleet.deviceOf(placement.nodeId)?.workLeftOf(id) ?? null)
      return left ?? { work: workOf(workload.planOf(id, command)), doneUs: 0 }
    },
    cancelAtOf: ({ id }) => {
      const atMs = world.cancels.get(id)
      return atMs === undefined ? null : atMs - world.nowMs
    },
    allocStepsOf: ({ id }) => workload.allocStepsOf(id),
    gpuModelOf: ({ id }) => models.get(id) as GpuModel,
  })
}
