/**
 * What the next cycle would do after a change of the configuration: the cycle itself, run on a copy of the
 * cluster.
 */
import type { Instant, Mib } from '../../../protocol/units.ts'
import type { Cluster } from '../cluster.ts'
import { runCycle } from '../cycle.ts'
import type { CloneSettings } from './cluster-clone.ts'
import { cloneCluster } from './cluster-clone.ts'
import { MAX_NAMED_TASKS } from './impact-pending.ts'

/** A copy of more open tasks than this takes too long to be made while requests wait. */
export const MAX_COPIED_TASKS = 10_000

export interface CycleImpact {
  /** Pending tasks that would get their GPUs at once. */
  readonly starts: number
  /** Pending tasks for which others would begin to leave; they start when these have left. */
  readonly startsAfterSwaps: number
  /** Of both, in order of submission; at most MAX_NAMED_TASKS. */
  readonly taskIds: readonly string[]
  /** Placed tasks that would begin to leave, for whomever, and what they hold on all their GPUs. */
  readonly swapOuts: number
  readonly swapOutMib: Mib
}

/** Null when the cluster is too large to be copied in passing. */
export function cycleImpact(c: Cluster, settings: CloneSettings, now: Instant): CycleImpact | null {
  if (c.tasks.size > MAX_COPIED_TASKS) return null
  const clone = cloneCluster(c, settings, now)
  runCycle(clone, now)
  const impact = { starts: 0, startsAfterSwaps: 0, swapOuts: 0, swapOutMib: 0 }
  const taskIds: string[] = []
  for (const [id, { placement, placementEntry }] of c.tasks) {
    const then = clone.tasks.get(id)
    if (then === undefined) continue
    if (placement !== null) {
      if (placement.residency === 'swapping_out' || then.placement?.residency !== 'swapping_out') continue
      impact.swapOuts += 1
      impact.swapOutMib += placement.demandMib * placement.gpus.length
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
