/** The tasks of a `generate` item: every property from a random stream of its own, so that changing one leaves the others as they were. */
import type { Random, RandomStream } from '../../controller/ports/random.ts'
import type { DurationMs, Mib, Priority } from '../../protocol/units.ts'
import { constant, type Distribution, exponential, lognormal, uniform, weightedChoice } from '../distributions.ts'
import { activityModel } from '../fleet/activity.ts'
import { type ArrivalSource, makeSource } from './arrivals.ts'
import type { DurationSpec, GenerateItem, SimTask, VramSpec, Weights } from './scenario.ts'
import { MAX_WORK_MS } from './schema-workload.ts'
import { TASK_DEFAULTS } from './task-request.ts'

const NO_LABELS = Object.freeze({})
const NO_STEPS = Object.freeze([])

/** Streams: `workload/<name>/{arrival,gpus,vram,duration,activity,priority,noswap}`. Arrivals are rounded down to whole ms. */
export function poissonArrivals(item: GenerateItem, random: Random): ArrivalSource {
  const stream = (purpose: string): RandomStream => random.stream(`workload/${item.name}/${purpose}`)
  const gap = exponential(3_600_000 / item.ratePerHour)
  const arrival = stream('arrival')
  const task = taskMaker(item, stream)
  const untilMs = item.untilMs ?? Infinity
  const count = item.count ?? Infinity
  let atMs = item.fromMs
  let made = 0
  return makeSource(() => {
    if (made >= count || atMs >= untilMs) return null
    atMs += gap.sample(arrival)
    return atMs >= untilMs ? null : task(made++, Math.floor(atMs))
  })
}

function taskMaker(item: GenerateItem, stream: (purpose: string) => RandomStream): (number: number, at: DurationMs) => SimTask {
  const gpuCount = drawFrom(weightedChoice(item.gpus), item.gpus, stream('gpus'))
  const vramMib = item.vram === null ? () => null : vramDraw(item.vram, stream('vram'))
  const residenceMs = durationDraw(item.duration, stream('duration'))
  const work = activityModel(item.activity)
  const priority = drawFrom(weightedChoice(item.priority), item.priority, stream('priority'))
  const [activity, noswap] = [stream('activity'), stream('noswap')]
  return (number, at) => ({
    at,
    request: {
      id: `${item.name}-${number}`,
      name: null,
      vramMib: vramMib(),
      gpuCount: gpuCount(),
      gpuMode: item.gpuMode,
      noswap: Math.floor(noswap() * 1000) < item.noswapPermille ? 1 : 0,
      priority: priority() as Priority,
      groups: item.groups,
      labels: NO_LABELS,
      owner: item.owner,
      command: null,
      maxRuntimeSeconds: null,
      onNodeLoss: TASK_DEFAULTS.onNodeLoss,
    },
    work: work(residenceMs(), activity),
    allocSteps: NO_STEPS,
    cancelAt: null,
  })
}

/** A single value takes no random number. */
function drawFrom(choose: (random: RandomStream) => number, weights: Weights, random: RandomStream): () => number {
  const only = weights.length === 1 ? weights[0]![0] : null
  return only === null ? () => choose(random) : () => only
}

function vramDraw(spec: VramSpec, random: RandomStream): () => Mib {
  switch (spec.kind) {
    case 'constant':
      return () => spec.mib
    case 'choice':
      return drawFrom(weightedChoice(spec.weights), spec.weights, random)
    case 'uniform':
      return () => spec.minMib + Math.floor(random() * (spec.maxMib - spec.minMib + 1))
    case 'lognormal': {
      const distribution = lognormal(spec.medianMib, spec.sigma)
      return () => Math.min(spec.maxMib, Math.max(spec.minMib, Math.round(distribution.sample(random))))
    }
  }
}

function durationDraw(spec: DurationSpec, random: RandomStream): () => DurationMs {
  const distribution = durationDistribution(spec)
  return () => Math.min(MAX_WORK_MS, Math.max(1, Math.round(distribution.sample(random))))
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
  }
}
