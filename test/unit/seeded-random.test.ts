import { describe, expect, it } from 'vitest'
import {
  constant,
  exponential,
  lognormal,
  normal,
  quantileTable,
  uniform,
  weightedChoice,
} from '../../simulator/kernel/distributions.ts'
import { createSeededRandom, seededStream } from '../../simulator/kernel/seeded-random.ts'

/** Streams of seedrandom's Alea for the seed `42/arrivals`. */
const RECORDED = [0.09669156046584249, 0.10787259554490447, 0.9512710100971162]

const take = (n: number, next: () => number): number[] => Array.from({ length: n }, next)

describe('named random streams', () => {
  it('have the recorded numbers on every machine', () => {
    expect(take(3, createSeededRandom(42).stream('arrivals'))).toEqual(RECORDED)
  })
  it('are equal for the same seed and name, and differ for another seed or name', () => {
    const numbers = take(5, createSeededRandom(1).stream('a'))
    expect(take(5, createSeededRandom(1).stream('a'))).toEqual(numbers)
    expect(take(5, createSeededRandom(2).stream('a'))).not.toEqual(numbers)
    expect(take(5, createSeededRandom(1).stream('b'))).not.toEqual(numbers)
  })
  it('continue when requested again', () => {
    const random = createSeededRandom('seed')
    const numbers = [...take(2, random.stream('a')), ...take(2, random.stream('a'))]
    expect(numbers).toEqual(take(4, createSeededRandom('seed').stream('a')))
  })
  it('do not shift when another consumer is added', () => {
    const random = createSeededRandom(7)
    const a = random.stream('a')
    take(100, random.stream('newcomer'))
    expect(take(3, a)).toEqual(take(3, createSeededRandom(7).stream('a')))
  })
  it('equal those of seededStream, which restart each time', () => {
    expect(take(3, seededStream(7, 'a'))).toEqual(take(3, createSeededRandom(7).stream('a')))
    expect(take(3, seededStream(7, 'a'))).toEqual(take(3, seededStream(7, 'a')))
  })
  it('have evenly distributed first numbers for names that differ in one digit', () => {
    const firsts = Array.from({ length: 20_000 }, (_, i) => seededStream(0, `sample/task-${i}`)())
    for (let tenth = 0; tenth < 10; tenth++) {
      const share = firsts.filter((u) => u >= tenth / 10 && u < (tenth + 1) / 10).length / firsts.length
      expect(Math.abs(share - 0.1)).toBeLessThan(0.01)
    }
  })
})

describe('distributions', () => {
  const N = 200_000
  const sampled = (distribution: { sample(random: () => number): number }): number[] => {
    const random = seededStream('distributions', 'test')
    return take(N, () => distribution.sample(random)).sort((a, b) => a - b)
  }
  const mean = (values: readonly number[]): number => values.reduce((sum, x) => sum + x, 0) / values.length
  const quantile = (sorted: readonly number[], p: number): number => sorted[Math.floor(p * sorted.length)]!

  it.each([
    ['uniform', uniform(10, 20), 15],
    ['exponential', exponential(300), 300],
    ['normal', normal(5, 2), 5],
    ['lognormal', lognormal(23_000, 0.3), 24_058.6],
    ['quantile table', quantileTable([[0, 1], [0.5, 10], [1, 1000]]), 109.4], // prettier-ignore
    ['constant', constant(3), 3],
  ])('%s has the stated mean', (_name, distribution, expected) => {
    expect(distribution.mean / expected).toBeCloseTo(1, 3)
    expect(mean(sampled(distribution)) / distribution.mean).toBeCloseTo(1, 1)
  })
  it('normal has its standard deviation, lognormal its median and sigma', () => {
    expect(quantile(sampled(normal(5, 2)), 0.8413) - 5).toBeCloseTo(2, 1)
    const sorted = sampled(lognormal(100, 0.5))
    expect(quantile(sorted, 0.5) / 100).toBeCloseTo(1, 1)
    expect(Math.log(quantile(sorted, 0.8413) / 100)).toBeCloseTo(0.5, 1)
  })
  it('a quantile table passes through its quantiles, log-linear between them, and never outside', () => {
    const sorted = sampled(quantileTable([[0, 1], [0.5, 10], [0.5 + 0.25, 10], [1, 1000]])) // prettier-ignore
    expect(quantile(sorted, 0.25)).toBeCloseTo(Math.sqrt(10), 1)
    expect(quantile(sorted, 0.6)).toBe(10)
    expect(quantile(sorted, 0.875) / 100).toBeCloseTo(1, 1)
    expect(sorted[0]).toBeGreaterThanOrEqual(1)
    expect(sorted.at(-1)).toBeLessThanOrEqual(1000)
  })
  it('the remainder of a run at a random instant has the mean E[x²] / 2E[x]', () => {
    const table = quantileTable([[0, 1], [0.5, 10], [1, 1000]]) // prettier-ignore
    const runs = sampled(table)
    const random = seededStream('distributions', 'remainder')
    const remainders = take(N, () => table.sampleRemainder(random))
    expect(mean(remainders) / (mean(runs.map((x) => x * x)) / (2 * mean(runs)))).toBeCloseTo(1, 1)
  })
  it('the remainder of an exponential run has the distribution of a whole run', () => {
    const draw = exponential(10)
    expect(draw.sampleRemainder(seededStream(1, 'x'))).toBe(draw.sample(seededStream(1, 'x')))
  })
  it('a weighted choice picks by weight and never picks weight zero', () => {
    const random = seededStream('distributions', 'choice')
    // prettier-ignore
    const choose = weightedChoice([['never', 0], ['often', 8], ['seldom', 2], ['never', 0]])
    const picks = Array.from({ length: N }, () => choose(random))
    expect(picks).not.toContain('never')
    expect(picks.filter((pick) => pick === 'often').length / N).toBeCloseTo(0.8, 2)
    expect(weightedChoice([['only', 1]])(() => 0.999999)).toBe('only')
  })
  it('an exponential value is finite even for the largest number of a stream', () => {
    expect(exponential(1).sample(() => 1 - 1 / 4294967296)).toBeLessThan(23)
    expect(exponential(1).sample(() => 0)).toBeCloseTo(0)
  })
  it.each([
    ['uniform with swapped bounds', () => uniform(2, 1)],
    ['exponential of 0', () => exponential(0)],
    ['lognormal of a negative median', () => lognormal(-1, 1)],
    ['no weights', () => weightedChoice([])],
    ['a negative weight', () => weightedChoice([['a', 2], ['b', -1]])], // prettier-ignore
    ['a weight that is not a number', () => weightedChoice([['a', NaN]])],
    ['quantiles that begin above 0', () => quantileTable([[0.1, 1], [1, 2]])], // prettier-ignore
    ['quantiles that end below 1', () => quantileTable([[0, 1], [0.9, 2]])], // prettier-ignore
    ['quantiles with equal p', () => quantileTable([[0, 1], [0, 2], [1, 3]])], // prettier-ignore
    ['quantiles that decrease', () => quantileTable([[0, 2], [1, 1]])], // prettier-ignore
    ['quantiles that reach zero', () => quantileTable([[0, 0], [1, 1]])], // prettier-ignore
  ])('refuse %s', (_what, make) => {
    expect(make).toThrow(RangeError)
  })
})
