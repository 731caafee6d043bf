/**
 * Where nothing can signal that a task wants the GPU (`signals_wanted: false`), a swapped-out task is brought
 * back once it has been away for `swap_in_probe_seconds`, for one idle period: if it finds work there it
 * stays, else it ripens as a victim like any other (semantics 5, "Return"). Like any other return it is asked
 * for until the task is resident, however often the way back fails.
 */
import type { Instant } from '../../../protocol/units.ts'
import type { CancelTimer } from '../../ports/clock.ts'
import type { Cluster } from '../cluster.ts'
import { askForSwapIn } from './entries.ts'
import type { LivePlacement } from '../live.ts'

/** The timers of those that are away and not asked back by their probe yet. */
export type Probes = Map<LivePlacement, CancelTimer>

/**
 * The probe stands where it belongs, or nowhere. Call after every change of what it depends on: where the
 * task's bytes are, the configured period, whether its server can signal. One that has begun to ask is not
 * taken back.
 */
export function planProbe(c: Cluster, placement: LivePlacement, now: Instant): void {
  forgetProbe(c, placement)
  const { node, residency, swappedOutSince, isProbed } = placement
  if (node.signalsWanted || residency !== 'swapped_out' || swappedOutSince === null || isProbed) return
  const at = Math.max(now, swappedOutSince + c.policy.swapInProbeMs)
  c.probes.set(
    placement,
    c.wake(at, (due) => runProbe(c, placement, due)),
  )
}

/** Another period is configured. */
export function replanProbes(c: Cluster, now: Instant): void {
  for (const placement of [...c.probes.keys()]) planProbe(c, placement, now)
}

/**
 * Its time has come. Where somebody else asks for the return already the probe asks with him, so that it goes
 * on when he takes his word back.
 */
export function runProbe(c: Cluster, placement: LivePlacement, now: Instant): void {
  c.probes.delete(placement)
  if (placement.isOver) return
  placement.isProbed = true
  // What a restart must know; not a transition, so no event.
  c.eventLog.dirtyTask(placement.task)
  askForSwapIn(c, placement, now)
}

/** The task is on its way back, or its placement has ended. */
export function forgetProbe(c: Cluster, placement: LivePlacement): void {
  c.probes.get(placement)?.()
  c.probes.delete(placement)
}
