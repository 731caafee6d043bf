/** Previews the next cycle after a change of the configuration, by applying the change to a fork of the
 * cluster and running the cycle there. */
import { movableMib } from '../../model/placement.ts'
import type { Instant, Mib } from '../../../protocol/units.ts'
import type { Cluster } from '../../state/cluster.ts'
import { runCycle } from '../../engine/cycle.ts'
import { forkCluster } from '../../state/snapshot/snapshot.ts'
import { MAX_NAMED_TASKS } from './impact-pending.ts'

/** Forking more open tasks than this takes too long while requests wait. */
const MAX_COPIED_TASKS = 10_000

export interface CycleImpact {
  /** Pending tasks that would get their GPUs at once. */
  readonly starts: number
  /** Pending tasks for which victims would begin to leave; they start afterwards. */
  readonly startsAfterSwaps: number
  /** Ids of both, in submission order; at most MAX_NAMED_TASKS. */
  readonly taskIds: readonly string[]
  /** Placed tasks that would begin to leave, and their VRAM on all GPUs. */
  readonly swapOuts: number
  readonly swapOutMib: Mib
}

/** Returns null if the cluster is too large to be forked. */
export function cycleImpact(c: Cluster, change: (fork: Cluster) => void, now: Instant): CycleImpact | null {
  if (c.tasks.size > MAX_COPIED_TASKS) return null
  const fork = forkCluster(c, now)
  change(fork)
  runCycle(fork, now)
  const impact = { starts: 0, startsAfterSwaps: 0, swapOuts: 0, swapOutMib: 0 }
  const taskIds: string[] = []
  for (const [id, { placement, placementEntry }] of c.tasks) {
    const then = fork.tasks.get(id)
    if (then === undefined) continue
    if (placement !== null) {
      if (placement.residency === 'swapping_out' || then.placement?.residency !== 'swapping_out') continue
      impact.swapOuts += 1
      impact.swapOutMib += movableMib(placement) * placement.gpus.length
      continue
    }
    if (then.placement !== null) impact.starts += 1
    else if (then.placementEntry?.hasReserved === true && placementEntry?.hasReserved !== true)
      impact.startsAfterSwaps += 1
    else continue
    if (taskIds.length < MAX_NAMED_TASKS) taskIds.push(id)
  }
  return { ...impact, taskIds }
}
