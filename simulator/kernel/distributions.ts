/**
 * Probability distributions over a random stream, with the same bits on every machine (log and exp from
 * exact-math.ts). Values have the unit of the parameters.
 */
import type { RandomStream } from '../../controller/ports/random.ts'
import { exp, log } from './exact-math.ts'

export interface Distribution {
  readonly mean: number
  sample(random: RandomStream): number
}

/**
 * A distribution of run lengths that also yields the rest of a run at a random instant. The density of the
 * rest at x is P(run > x) / mean (renewal theory: Ross, Introduction to Probability Models, chapter 7).
 */
export interface RunLengthDistribution extends Distribution {
  sampleRemainder(random: RandomStream): number
}

/** Uniform on [low, high). Throws RangeError unless low <= high. */
export function uniform(low: number, high: number): Distribution {
  if (!(low <= high)) throw new RangeError(`uniform: low ${low} is above high ${high}`)
  return { mean: (low + high) / 2, sample: (random) => low + (high - low) * random() }
}

/**
 * Exponential with that mean (above 0). It has no memory: the remainder of a run is distributed like a whole
 * one.
 */
export function exponential(mean: number): RunLengthDistribution {
  requirePositive('exponential', 'mean', mean)
  const sample = (random: RandomStream): number => -mean * log(1 - random())
  return { mean, sample, sampleRemainder: sample }
}

/**
 * Normal, by Marsaglia's polar method. The second number of each pair is discarded, so that no state hides
 * between calls.
 */
export function normal(mean: number, standardDeviation: number): Distribution {
  return { mean, sample: (random) => mean + standardDeviation * standardNormal(random) }
}

/** exp of a normal: `median` is above 0, `sigma` is the standard deviation of the logarithm. */
export function lognormal(median: number, sigma: number): Distribution {
  requirePositive('lognormal', 'median', median)
  return {
    mean: median * exp((sigma * sigma) / 2),
    sample: (random) => median * exp(sigma * standardNormal(random)),
  }
}

/** Always the same value. Draws nothing from the stream. */
export function constant(value: number): Distribution {
  return { mean: value, sample: () => value }
}

/**
 * Picks a value in proportion to its weight (0 allowed, all finite, at least one above 0). The order of the
 * list influences the result of a seed.
 */
export function weightedChoice<T>(
  choices: ReadonlyArray<readonly [value: T, weight: number]>,
): (random: RandomStream) => T {
  let total = 0
  for (const [, weight] of choices) {
    if (!(weight >= 0 && weight < Infinity))
      throw new RangeError(`weightedChoice: weight ${weight} is not a finite number of 0 or more`)
    total += weight
  }
  requirePositive('weightedChoice', 'sum of weights', total)
  const last = choices.findLastIndex(([, weight]) => weight > 0)
  return (random) => {
    let left = random() * total
    for (let i = 0; i < last; i++) {
      left -= choices[i]![1]
      if (left < 0) return choices[i]![0]
    }
    return choices[last]![0]
  }
}

/**
 * The distribution through given quantiles; between two of them the logarithm of the value is linear in p.
 * @param points [p, value], p rising strictly from 0 to 1, values above 0 and never falling.
 */
export function quantileTable(
  points: ReadonlyArray<readonly [p: number, value: number]>,
): RunLengthDistribution {
  const segments = segmentsOf(points)
  let mean = 0
  for (const segment of segments) mean += segment.share
  const byShare = weightedChoice(segments.map((segment) => [segment, segment.share] as const))
  return {
    mean,
    sample: (random) => valueAt(segments, random()),
    // A run met at a random instant is chosen in proportion to its length, and that instant lies anywhere in
    // it. Inside a segment the density is 1 / (x ln(high / low)), so that the length-biased one is flat.
    sampleRemainder: (random) => {
      const { low, high } = byShare(random)
      return (low + (high - low) * random()) * (1 - random())
    },
  }
}

interface Segment {
  readonly fromP: number
  readonly width: number
  readonly low: number
  readonly high: number
  readonly logRatio: number
  /** This segment's part of the mean. */
  readonly share: number
}

function segmentsOf(points: ReadonlyArray<readonly [p: number, value: number]>): Segment[] {
  if (points.length < 2 || points[0]![0] !== 0 || points.at(-1)![0] !== 1)
    throw new RangeError('quantileTable: p must go from 0 to 1')
  const segments: Segment[] = []
  for (let i = 1; i < points.length; i++) {
    const [fromP, low] = points[i - 1]!
    const [toP, high] = points[i]!
    if (!(toP > fromP)) throw new RangeError(`quantileTable: p ${toP} does not rise above ${fromP}`)
    if (!(low > 0 && high >= low && high < Infinity))
      throw new RangeError(`quantileTable: value ${high} at p ${toP} after ${low}`)
    const logRatio = log(high / low)
    const width = toP - fromP
    segments.push({
      fromP,
      width,
      low,
      high,
      logRatio,
      share: width * (logRatio === 0 ? low : (high - low) / logRatio),
    })
  }
  return segments
}

function valueAt(segments: readonly Segment[], p: number): number {
  let i = 0
  while (i < segments.length - 1 && p >= segments[i + 1]!.fromP) i++
  const { fromP, width, low, logRatio } = segments[i]!
  return low * exp(((p - fromP) / width) * logRatio)
}

function standardNormal(random: RandomStream): number {
  for (;;) {
    const u = 2 * random() - 1
    const v = 2 * random() - 1
    const square = u * u + v * v
    if (square > 0 && square < 1) return u * Math.sqrt((-2 * log(square)) / square)
  }
}

function requirePositive(where: string, name: string, value: number): void {
  if (!(value > 0 && value < Infinity))
    throw new RangeError(`${where}: ${name} ${value} is not a finite number above 0`)
}
