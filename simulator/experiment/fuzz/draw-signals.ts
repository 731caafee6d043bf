/**
 * Nodes that cannot tell that a swapped-out task wants the GPU, probes that come often, and a few tasks that
 * sleep for long, so that they are away when something happens to their servers. All from random streams of
 * their own: the other draws of a seed are the same without.
 */
import type { DurationMs } from '../../../protocol/units.ts'
import type { FuzzRandom } from './fuzz-random.ts'
import type { Entry, FuzzDocument } from './document.ts'
import type { Features } from './features.ts'

type Drawn = Pick<FuzzDocument, 'fleet' | 'config' | 'workload'>

/** @param arrivalsMs the last task arrives by then */
export function drawSignals(
  dice: FuzzRandom,
  drawn: Drawn,
  { on, faults }: Features,
  arrivalsMs: DurationMs,
): Drawn {
  if (!on.has('no_signals')) return drawn
  const isCalm = faults.length === 0
  const percent = dice.oneOf([50, 100])
  const idlePeriodMs = Number(drawn.config['idle_swap_out_seconds']) * 1000
  const sleepers = Array.from({ length: dice.between(1, 4) }, (_, index) => ({
    task: drawSleeper(dice, `s${index}`, idlePeriodMs, dice.below(arrivalsMs)),
  }))
  return {
    fleet: drawn.fleet.map((entry) => (dice.chance(percent) ? { ...entry, signals_wanted: false } : entry)),
    config: {
      ...drawn.config,
      swap_in_probe_seconds: dice.oneOf(isCalm ? [5, 20, 60, 300] : [2, 5, 15, 30]),
    },
    workload: [...drawn.workload, ...sleepers],
  }
}

/** Works, is idle for several idle periods, and works again. */
function drawSleeper(dice: FuzzRandom, id: string, idlePeriodMs: DurationMs, at: DurationMs): Entry {
  const sleeps = [
    idlePeriodMs * dice.between(2, 8) + dice.below(idlePeriodMs),
    dice.below(2) * idlePeriodMs * dice.between(1, 4),
  ]
  const phases = sleeps.map((idleMs) => [1 + dice.below(2_000), idleMs])
  return { id, at: `${at}ms`, vram_mib: dice.between(300, 800), work: { kind: 'phases', phases } }
}
