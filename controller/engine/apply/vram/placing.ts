/** Carries out a plan for a pending task: it is placed, or VRAM is reserved while victims leave. */
import type { Instant } from '../../../../protocol/units.ts'
import type { Node } from '../../../model/placement.ts'
import type { Plan } from '../../../policy/placement/schedule.ts'
import { mustPrepare } from '../../../policy/placement/prepare.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { Considered } from '../decision-log.ts'
import { consideredFor } from '../decision-log.ts'
import type { LiveGpu, LiveNode, LiveTask } from '../../../state/facts.ts'
import { beginPreparing } from '../lifecycle/preparations.ts'
import { assign } from '../lifecycle/transitions.ts'
import { reserveForPlacement, type Placed } from './enact-entry.ts'
import { askForPlacement } from '../lifecycle/entries.ts'

/**
 * Returns `not` if the task is neither placed nor prepared first, nor has VRAM reserved: it avoids the node
 * for the rest of the cycle.
 */
export function placeByPlan(c: Cluster, plan: Plan, now: Instant): Placed {
  const task = plan.task as LiveTask
  const gpus = plan.gpus as readonly LiveGpu[]
  if (mustPrepare(task, plan.node)) {
    beginPreparing(c, task, plan.node as LiveNode, now)
    return 'placed'
  }
  const considered = consideredFor(c, plan)
  if (plan.when === 'now') {
    assign(c, task, gpus, 'now', now, considered)
    return 'placed'
  }
  const placed = reserveAfterSwap(c, task, gpus, considered, now)
  if (placed === 'not') avoid(c, task, plan.node)
  return placed
}

/**
 * The task fits once victims have left: its VRAM is reserved. Returns `not` if the victims do not cover it
 * after all.
 */
function reserveAfterSwap(
  c: Cluster,
  task: LiveTask,
  gpus: readonly LiveGpu[],
  considered: Considered | null,
  now: Instant,
): Placed {
  const isThere =
    task.placementEntry !== null &&
    task.placementEntry.gpus.length === gpus.length &&
    task.placementEntry.gpus.every((gpu) => gpus.includes(gpu))
  return reserveForPlacement(
    c,
    isThere && task.placementEntry !== null
      ? task.placementEntry
      : askForPlacement(c, task, gpus, task.spec.vramMib),
    considered,
    now,
  )
}

function avoid(c: Cluster, task: LiveTask, node: Node): void {
  task.avoidedNow = new Set([...(task.avoidedNow ?? []), node])
  c.avoiders.add(task)
}
