/** Tasks that are being stopped: their servers have the order and have not reported the end yet. */
import type { DurationMs, Instant } from '../../../../protocol/units.ts'
import type { Cluster } from '../../../state/cluster.ts'
import type { LivePlacement } from '../../../state/facts.ts'
import type { Stopping } from '../../../model/placement.ts'
import { placementsOn } from '../../../state/placements-on.ts'
import { stopEffect } from '../node-commands.ts'
import { askForSwapIn } from './entries.ts'

/** Allowance on top of the grace for SIGKILL, the report of the end and a slow link. */
const OVERDUE_AFTER_MS: DurationMs = 60_000

export interface Stops {
  readonly count: number
  /** More than a minute past the grace, on nodes that are not unreachable. */
  readonly overdue: readonly LivePlacement[]
}

/** Records the stop. The placement is not a victim anymore: its VRAM becomes free anyway. */
export function noteStop(c: Cluster, placement: LivePlacement, stopping: Stopping, now: Instant): void {
  placement.stopping = stopping
  c.eligibilityTimers.update(c, placement, now)
}

/**
 * Orders the node to end the attempt; the task's next state is recorded durably. With a grace period a
 * swapped-out task requests its return, so that it can handle SIGTERM.
 */
export function orderStop(
  c: Cluster,
  placement: LivePlacement,
  stopping: Stopping,
  now: Instant,
  causedBy = placement.task.lastEventSeq,
): void {
  noteStop(c, placement, { ...stopping, since: placement.stopping?.since ?? now }, now)
  c.eventLog.transaction.effects.push(stopEffect(placement, stopping))
  c.eventLog.taskEvent(now, 'task_updated', placement.task, placement.node.id, { stopping: true }, causedBy)
  if ((stopping.graceMs ?? 0) > 0 && placement.residency === 'swapped_out') askForSwapIn(c, placement, now)
}

export function stopsOf({ nodes }: Pick<Cluster, 'nodes'>, now: Instant): Stops {
  let count = 0
  const overdue: LivePlacement[] = []
  for (const node of nodes.values()) {
    for (const placement of placementsOn(node)) {
      if (placement.stopping === null) continue
      count += 1
      if (placement.task.state !== 'unreachable' && now > overdueAt(placement.stopping))
        overdue.push(placement)
    }
  }
  return { count, overdue }
}

function overdueAt({ since = Infinity, graceMs = 0 }: Stopping): Instant {
  return since + graceMs + OVERDUE_AFTER_MS
}
