/** The Prometheus text format 0.0.4. */

/** The values of a family's labels, in the order of their names, and the measured value. */
export interface Sample {
  readonly labels: readonly string[]
  readonly value: number
}

export interface HistogramSample {
  readonly labels: readonly string[]
  /** Number of observations up to each bound, cumulative; the last one is the total. */
  readonly counts: readonly number[]
  readonly sum: number
}

interface FamilyHead {
  /** Name with its unit at the end; the name of a counter ends in `_total`. */
  readonly name: string
  /** One sentence. */
  readonly help: string
  readonly labels: readonly string[]
}

export interface ValueFamily extends FamilyHead {
  readonly type: 'gauge' | 'counter'
  /** An unknown value has no sample. */
  readonly samples: () => Iterable<Sample>
}

export interface HistogramFamily extends FamilyHead {
  readonly type: 'histogram'
  /** Ascending upper bounds; infinity is added. */
  readonly bounds: readonly number[]
  readonly samples: () => Iterable<HistogramSample>
}

export type Family = ValueFamily | HistogramFamily

export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** One family with its current samples and terminated lines; without samples it still has help and type. */
export function expose(family: Family): string {
  const lines = [`# HELP ${family.name} ${escapeHelp(family.help)}`, `# TYPE ${family.name} ${family.type}`]
  if (family.type === 'histogram')
    for (const sample of family.samples()) exposeHistogram(lines, family, sample)
  else
    for (const { labels, value } of family.samples())
      lines.push(`${family.name}${labelsOf(family.labels, labels)} ${numberOf(value)}`)
  return `${lines.join('\n')}\n`
}

function exposeHistogram(
  lines: string[],
  { name, labels, bounds }: HistogramFamily,
  sample: HistogramSample,
): void {
  const names = [...labels, 'le']
  for (const [i, count] of sample.counts.entries()) {
    const bound = bounds[i] === undefined ? '+Inf' : numberOf(bounds[i])
    lines.push(`${name}_bucket${labelsOf(names, [...sample.labels, bound])} ${count}`)
  }
  const own = labelsOf(labels, sample.labels)
  lines.push(`${name}_sum${own} ${numberOf(sample.sum)}`, `${name}_count${own} ${sample.counts.at(-1) ?? 0}`)
}

function labelsOf(names: readonly string[], values: readonly string[]): string {
  if (names.length === 0) return ''
  return `{${names.map((name, i) => `${name}="${escapeValue(values[i] ?? '')}"`).join(',')}}`
}

function numberOf(value: number): string {
  if (Number.isFinite(value)) return String(value)
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function escapeValue(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"')
}
