/**
 * Where nothing can signal that a task wants the GPU (`signals_wanted: false`), a swapped-out task is brought back every
 * `swap_in_probe_seconds`, for one idle period: if it finds work there it stays, else it ripens as a victim like any other (semantics 5, "Return").
 */
import type { Instant } from '../../protocol/units.ts'
import type { CancelTimer } from '../ports/clock.ts'
import type { Cluster } from './cluster.ts'
import { askForSwapIn } from './entries.ts'
import type { LivePlacement } from './live.ts'

/** A timer that waits; it is not taken back when the task returns before it. */
export interface Probe {
  /** Null: that placement has ended, and nothing comes of it. */
  readonly placement: LivePlacement | null
  /** Of the task's bytes, while they are away; a later one is another absence. */
  generation: number
  readonly plannedAt: Instant
  cancel: CancelTimer
}

/** The task has just left VRAM, or the controller has just started: from here on the period counts. Call after the change. */
export function planProbe(c: Cluster, placement: LivePlacement, now: Instant): void {
  if (placement.node.signalsWanted || placement.residency !== 'swapped_out') return
  const probe: Probe = { placement, generation: placement.generation, plannedAt: now, cancel: () => {} }
  probe.cancel = c.wake(now + c.policy.swapInProbeMs, () => runProbe(c, probe))
  c.probes.add(probe)
}

/** Its time has come. Where somebody else asks for the return already the probe asks with him, so that it goes on when he takes his word back. */
export function runProbe(c: Cluster, probe: Probe): void {
  c.probes.delete(probe)
  const { placement, generation, plannedAt } = probe
  if (placement === null) return
  const isStillOut = placement.task.placement === placement && placement.residency === 'swapped_out' && placement.generation === generation
  if (!isStillOut) return
  placement.isProbed = true
  askForSwapIn(c, placement, plannedAt + c.policy.swapInProbeMs)
}

/** The server says by another number that the task is away, as after it has started again: that is the same absence, and its probe goes on. */
export function followGeneration(c: Cluster, placement: LivePlacement, generation: number): void {
  if (placement.residency === 'swapped_out')
    for (const probe of c.probes)
      if (probe.placement === placement && probe.generation === placement.generation) probe.generation = generation
  placement.generation = generation
}
