/**
 * Draws nodes on which swapped-out tasks cannot signal that they want the GPU, frequent probes, and a few
 * tasks with long idle times, so that they are swapped out when their servers fail. All from separate random
 * streams: the other draws of a seed do not depend on them.
 */
import type { DurationMs } from '../../../protocol/units.ts'
import type { FuzzRandom } from './fuzz-random.ts'
import type { Entry, FuzzDocument } from './document.ts'
import type { Features } from './features.ts'

type Drawn = Pick<FuzzDocument, 'fleet' | 'config' | 'workload'>

/** @param arrivalsMs latest arrival of a task */
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
