/** The measures of sweeps and their targets (issue 5, "Must show" and item 3). */
import type { Target } from '../targets.ts'

export const SWEEP_TARGETS = {
  sweep_speedup: { unit: '× one worker', floor: 1.6, aim: 1.85, better: 'higher' },
  sweep_openb_s: { unit: 's', floor: 120, aim: 60, better: 'lower' },
  day_64_gpus: { unit: '× real time', floor: 10_000, aim: 50_000, better: 'higher' },
} as const satisfies Readonly<Record<string, Target>>

export type SweepMeasure = keyof typeof SWEEP_TARGETS
