/** The measures in table order, and their targets. */

export interface Target {
  readonly unit: string
  /** Missing it fails the run. Null: the measure is printed for comparison only. */
  readonly floor: number | null
  readonly aim: number
  readonly better: 'higher' | 'lower'
}

export const TARGETS = {
  sim_events_ratio: { unit: '× bare', floor: null, aim: 0.18, better: 'higher' },
  digest_ratio: { unit: '× without', floor: 0.7, aim: 0.85, better: 'higher' },
  replay_100k: { unit: '× surroundings', floor: 4, aim: 2.5, better: 'lower' },
  replay_1m: { unit: '× surroundings', floor: 5, aim: 2.5, better: 'lower' },
  replay_w1_cpu_s: { unit: 's', floor: 1.5, aim: 1.5, better: 'lower' },
  decisions_scaling: { unit: '× at 1,000', floor: 0.5, aim: 0.8, better: 'higher' },
  decisions_per_cpu_s: { unit: '/s', floor: 15_000, aim: 60_000, better: 'higher' },
  blocked_pass_ms: { unit: 'ms', floor: 1, aim: 0.05, better: 'lower' },
  victim_choice_ratio: { unit: '× a scan', floor: 200, aim: 1_000, better: 'higher' },
  heap_per_task_bytes: { unit: 'B', floor: 700, aim: 400, better: 'lower' },
} as const satisfies Readonly<Record<string, Target>>

export type MeasureName = keyof typeof TARGETS

export const MEASURE_NAMES = Object.keys(TARGETS) as readonly MeasureName[]

/** One figure. `note` briefly states its inputs, or why the figure is missing. */
export interface Reading<N extends string = MeasureName> {
  readonly name: N
  /** Skipped: this machine lacks a requirement. Failed: the bench did not end successfully. */
  readonly value: number | 'skipped' | 'failed'
  readonly note: string
}

export function meets(value: number, limit: number, better: Target['better']): boolean {
  return better === 'higher' ? value >= limit : value <= limit
}
