import type { DurationMs } from '../../protocol/units.ts'
import type { Work } from '../../simulator/trace/trace-format.ts'

/** The busy and idle phases of a task; between two of them there is one change of activity. */
export function stepsOf(work: Work): readonly DurationMs[] {
  switch (work.kind) {
    case 'duration':
      return [work.ms]
    case 'phases':
      return work.phases.flat().filter((ms) => ms > 0)
    case 'bursts':
      throw new Error('bursts are not supported in benches')
  }
}

/** Number of activity changes between its start and its end. */
export function changesOf(work: Work): number {
  if (work.kind !== 'phases') return 0
  let steps = 0
  for (const [busyMs, idleMs] of work.phases) steps += (busyMs > 0 ? 1 : 0) + (idleMs > 0 ? 1 : 0)
  return steps - 1
}
