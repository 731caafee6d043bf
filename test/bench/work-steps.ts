import type { DurationMs } from '../../protocol/units.ts'
import type { Work } from '../../simulator/trace/trace-format.ts'

/**
 * The stretches of GPU work and of none that a task goes through; between two of them lies one change of
 * activity.
 */
export function stepsOf(work: Work): readonly DurationMs[] {
  switch (work.kind) {
    case 'duration':
      return [work.ms]
    case 'phases':
      return work.phases.flat().filter((ms) => ms > 0)
    case 'bursts':
      throw new Error('no bench runs bursts')
  }
}

/** How often its activity changes between its start and its end. */
export function changesOf(work: Work): number {
  if (work.kind !== 'phases') return 0
  let steps = 0
  for (const [busyMs, idleMs] of work.phases) steps += (busyMs > 0 ? 1 : 0) + (idleMs > 0 ? 1 : 0)
  return steps - 1
}
