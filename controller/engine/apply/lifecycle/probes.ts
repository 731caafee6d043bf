/**
 * Where nothing can signal that a task wants the GPU (`signals_wanted: false`), a swapped-out task is swapped
 * in after `swap_in_probe_seconds` for one idle period: if it finds work it stays, otherwise it becomes an
 * eligible victim like any other (semantics 5, "Return"). The request stays until the task is resident,
 * however often the swap-in fails.
 */
import type { Instant } from '../../../../protocol/units.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { askForSwapIn } from './entries.ts'
import type { LivePlacement } from '../../../state/facts.ts'

/**
 * Sets, moves or cancels the probe. Call after every change it depends on: the residency of the task, the
 * configured interval, whether its server signals requests. A probe that has requested the return is not
 * withdrawn.
 */
export function planProbe(c: Cluster, placement: LivePlacement, now: Instant): void {
  forgetProbe(c, placement)
  const { node, residency, swappedOutSince, isProbed, isWakeable } = placement
  if (node.signalsWanted || isWakeable || isProbed) return
  if (residency !== 'swapped_out' || swappedOutSince === null) return
  const at = Math.max(now, swappedOutSince + c.policy.swapInProbeMs)
  c.probes.set(
    placement,
    c.wake(at, (due) => runProbe(c, placement, due)),
  )
}

/** The configured interval changed. */
export function replanProbes(c: Cluster, now: Instant): void {
  for (const placement of [...c.probes.keys()]) planProbe(c, placement, now)
}

/** If a swap-in is already queued, the probe keeps it queued even if the first requester withdraws. */
export function runProbe(c: Cluster, placement: LivePlacement, now: Instant): void {
  c.probes.delete(placement)
  if (placement.isOver) return
  placement.isProbed = true
  // A restart must know it; it is not a transition, so there is no event.
  c.eventLog.dirtyTask(placement.task)
  askForSwapIn(c, placement, now)
}

/** The task returns, or its placement has ended. */
export function forgetProbe(c: Cluster, placement: LivePlacement): void {
  c.probes.get(placement)?.()
  c.probes.delete(placement)
}
