/** Random draws of durations and activity as a scenario specifies them. */
import type { RandomStream } from '../../controller/ports/random.ts'
import type { DurationMs } from '../../protocol/units.ts'
import {
  constant,
  type Distribution,
  exponential,
  lognormal,
  uniform,
  weightedChoice,
} from '../kernel/distributions.ts'
import { type ActivityModel, activityModel, onOff } from '../trace/activity.ts'
import type { ActivitySpec, DurationSpec } from './scenario.ts'
import { MAX_WORK_MS } from './schema-workload.ts'

/** Draws whole ms, at least 1. */
export function durationDraw(spec: DurationSpec, random: RandomStream): () => DurationMs {
  const distribution = durationDistribution(spec)
  return () => Math.min(MAX_WORK_MS, Math.max(1, Math.round(distribution.sample(random))))
}

export function activityOf(spec: ActivitySpec): ActivityModel {
  if (typeof spec === 'string') return activityModel(spec)
  return onOff(durationDistribution(spec.busy), durationDistribution(spec.idle), spec.startsIdle)
}

function durationDistribution(spec: DurationSpec): Distribution {
  switch (spec.kind) {
    case 'constant':
      return constant(spec.ms)
    case 'uniform':
      return uniform(spec.minMs, spec.maxMs)
    case 'exponential':
      return exponential(spec.meanMs)
    case 'lognormal':
      return lognormal(spec.medianMs, spec.sigma)
    case 'choice':
      return chosen(spec.weights)
  }
}

function chosen(weights: ReadonlyArray<readonly [value: number, weight: number]>): Distribution {
  const total = weights.reduce((sum, [, weight]) => sum + weight, 0)
  const mean = weights.reduce((sum, [value, weight]) => sum + value * weight, 0) / total
  return { mean, sample: weightedChoice(weights) }
}
