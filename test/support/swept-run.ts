/** Runs of a sweep with the figures that a test needs. */
import type { Metrics } from '../../simulator/scenario/metrics.ts'
import type { Settings, SweepRun } from '../../simulator/experiment/sweep/sweep.ts'

export interface SweptRunFigures {
  readonly percent: number
  readonly seed: number
  readonly utilization?: number | null
  readonly starvation?: number
  readonly swapsPerHour?: number
  /** Of servers that cannot signal. */
  readonly unheard?: number
  readonly queueWait?: Metrics['queue_wait_s']
  readonly settings?: Settings
}

export function sweptRun({ percent, seed, settings = {}, ...figures }: SweptRunFigures): SweepRun {
  const starvation = figures.starvation ?? 0
  return {
    overcommit_percent: percent,
    settings,
    digest: `${percent}-${seed}`,
    scenario_sha256: 'a'.repeat(64),
    trace_sha256: null,
    seed,
    version: '0.1.0',
    virtual_s: 3600,
    metrics: {
      jct_s: null,
      queue_wait_s: figures.queueWait ?? null,
      slowdown: null,
      makespan_s: 3600,
      utilization_percent: figures.utilization === undefined ? 50 : figures.utilization,
      starvation_percent: { total: starvation, queue: starvation, swap: 0, compute: 0 },
      ...(figures.unheard === undefined ? {} : { unsignalled_wait_percent: figures.unheard }),
      swaps_per_hour: figures.swapsPerHour ?? 0,
      swapped_gib_per_hour: 0,
      swap_jain: null,
      tasks: { submitted: 1, completed: 1, failed: 0, unfinished: 0 },
    },
  }
}
