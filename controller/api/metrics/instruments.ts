/** Instruments that count events as they happen; all other metrics are read on request. */
import type { HistogramFamily, HistogramSample, Sample, ValueFamily } from './exposition.ts'

/** Maximum number of series of an instrument; further ones are counted under `other`. */
export const MAX_SERIES = 1_000
const OTHER = 'other'

/** From a tenth of a millisecond to ten seconds: work inside a process. */
export const FAST_SECONDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
] as const
/** From 50 ms to ten minutes: data transfers. */
export const COPY_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600] as const
/** From a tenth of a second to ten minutes: wait of a client of a model server. */
export const WAKE_SECONDS = [0.1, 0.25, 0.5, 1, 1.5, 2, 3, 5, 7.5, 10, 20, 30, 60, 120, 300, 600] as const
/** From a tenth of a second to a week: waiting times. */
export const WAIT_SECONDS = [0.1, 1, 5, 15, 60, 300, 900, 3_600, 10_800, 43_200, 86_400, 604_800] as const

interface Described {
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
}

export class Counter implements ValueFamily {
  readonly type = 'counter'
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
  readonly #series = new Map<string, { readonly labels: readonly string[]; value: number }>()

  constructor({ name, help, labels = [] }: Described) {
    this.name = name
    this.help = help
    this.labels = labels
  }

  add(value: number, ...labels: readonly string[]): void {
    seriesOf(this.#series, labels, (own) => ({ labels: own, value: 0 })).value += value
  }

  readonly samples = (): Iterable<Sample> => this.#series.values()
}

interface HistogramSeries {
  readonly labels: readonly string[]
  /** Per bucket, not cumulative. */
  readonly counts: number[]
  sum: number
}

export class Histogram implements HistogramFamily {
  readonly type = 'histogram'
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
  readonly bounds: readonly number[]
  readonly #series = new Map<string, HistogramSeries>()

  constructor({ name, help, labels = [], bounds }: Described & { readonly bounds: readonly number[] }) {
    this.name = name
    this.help = help
    this.labels = labels
    this.bounds = bounds
    // Without labels there is exactly one series, which exists from the beginning.
    if (labels.length === 0) this.#seriesOf([])
  }

  observe(value: number, ...labels: readonly string[]): void {
    this.#count(this.#seriesOf(labels), value)
  }

  /** `observe` for repeated labels: they are looked up once. */
  observer(...labels: readonly string[]): (value: number) => void {
    const series = this.#seriesOf(labels)
    return (value) => this.#count(series, value)
  }

  #count(series: HistogramSeries, value: number): void {
    let bucket = 0
    while (bucket < this.bounds.length && value > (this.bounds[bucket] as number)) bucket += 1
    series.counts[bucket] = (series.counts[bucket] as number) + 1
    series.sum += value
  }

  *samples(): Generator<HistogramSample> {
    for (const { labels, counts, sum } of this.#series.values()) {
      let total = 0
      yield { labels, counts: counts.map((count) => (total += count)), sum }
    }
  }

  #seriesOf(labels: readonly string[]): HistogramSeries {
    return seriesOf(this.#series, labels, (own) => ({
      labels: own,
      counts: this.bounds.map(() => 0).concat(0),
      sum: 0,
    }))
  }
}

function seriesOf<S>(
  all: Map<string, S>,
  labels: readonly string[],
  make: (labels: readonly string[]) => S,
): S {
  const key = labels.length === 1 ? (labels[0] as string) : labels.join('\n')
  const known = all.get(key)
  if (known !== undefined) return known
  if (all.size >= MAX_SERIES && labels.some((label) => label !== OTHER)) {
    return seriesOf(
      all,
      labels.map(() => OTHER),
      make,
    )
  }
  const made = make(labels)
  all.set(key, made)
  return made
}
