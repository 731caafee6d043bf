/**
 * The tasks of a `generate` item. Each property has its own random stream, so changing one does not affect
 * the others.
 */
import type { Random, RandomStream } from '../../controller/ports/random.ts'
import type { DurationMs, Mib, Priority } from '../../protocol/units.ts'
import { constant, exponential, lognormal, weightedChoice } from '../kernel/distributions.ts'
import { type ArrivalSource, makeSource } from './arrivals.ts'
import { activityOf, durationDraw } from './draw-duration.ts'
import type { DailyRate, GenerateItem, SimTask, VramSpec, Weights } from './scenario.ts'

const NO_STEPS = Object.freeze([])

const HOUR_MS: DurationMs = 3_600_000
const DAY_MS: DurationMs = 24 * HOUR_MS

/**
 * Streams: `workload/<name>/{arrival,gpus,vram,duration,activity,priority,noswap,cancel}`. Arrivals are
 * rounded down to whole ms.
 */
export function generatedArrivals(item: GenerateItem, random: Random): ArrivalSource {
  const stream = (purpose: string): RandomStream => random.stream(`workload/${item.name}/${purpose}`)
  const meanMs = HOUR_MS / item.ratePerHour
  const gap = item.arrivals === 'regular' ? constant(meanMs) : exponential(meanMs)
  const arrival = stream('arrival')
  const task = taskMaker(item, stream)
  const untilMs = item.untilMs ?? Infinity
  const count = item.count ?? Infinity
  let atMs = item.fromMs
  let made = 0
  let leftOfBatch = 0
  return makeSource(() => {
    if (made >= count || atMs >= untilMs) return null
    if (leftOfBatch === 0) {
      atMs = after(atMs, gap.sample(arrival), item.daily)
      leftOfBatch = item.batch
    }
    leftOfBatch -= 1
    return atMs >= untilMs ? null : task(made++, Math.floor(atMs))
  })
}

/**
 * Returns the instant by which the hourly rate yields as many arrivals as a constant rate does in `gapMs`.
 */
function after(fromMs: number, gapMs: number, daily: DailyRate | null): number {
  if (daily === null) return fromMs + gapMs
  const { factors, startMs } = daily
  let [atMs, leftMs] = [fromMs, gapMs]
  for (;;) {
    const ofDayMs = (startMs + atMs) % DAY_MS
    const factor = factors[Math.floor(ofDayMs / HOUR_MS)] as number
    const toNextMs = HOUR_MS - (ofDayMs % HOUR_MS)
    if (factor * toNextMs >= leftMs) return atMs + leftMs / factor
    leftMs -= factor * toNextMs
    atMs += toNextMs
  }
}

function taskMaker(
  item: GenerateItem,
  stream: (purpose: string) => RandomStream,
): (number: number, at: DurationMs) => SimTask {
  const gpuCount = drawFrom(weightedChoice(item.gpus), item.gpus, stream('gpus'))
  const vramMib = item.vram === null ? () => null : vramDraw(item.vram, stream('vram'))
  const residenceMs = durationDraw(item.duration, stream('duration'))
  const work = activityOf(item.activity)
  const cancelAfterMs = item.cancelAfter === null ? null : durationDraw(item.cancelAfter, stream('cancel'))
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
      labels: item.labels,
      owner: item.owner,
      command: null,
      ...item.runPolicy,
    },
    work: work(residenceMs(), activity),
    allocSteps: NO_STEPS,
    cancelAt: cancelAfterMs === null ? null : at + cancelAfterMs(),
    ...(item.stopTakesMs === undefined ? {} : { stopTakesMs: item.stopTakesMs }),
  })
}

/** A single value consumes no random number. */
function drawFrom(
  choose: (random: RandomStream) => number,
  weights: Weights,
  random: RandomStream,
): () => number {
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
