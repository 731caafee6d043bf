/** Metrics of runs by name: for tables, objectives, comparisons and files. Pure. */
import type {
  RunMetricsBody,
  SweepReportBody,
  SweptRunBody,
} from '../../../controller/api/simulations/sweep-report-schema.ts'
import { csvOf } from '../../format/csv.ts'
import { percent, seconds, UNKNOWN } from '../../format/figures.ts'
import { combinationsOf, type Combination } from './combinations.ts'

export type Cell = number | string | null

/** Without a wake no request waited for one. */
const NO_WAKE = { mean: 0, p50: 0, p95: 0, p99: 0 }

/**
 * The value of an objective's metric in a run, for example of `queue_wait.p95<=10m`; null: the run has no
 * such metric.
 */
export function objectiveFigure(objective: string, metrics: RunMetricsBody): number | null {
  const [name = ''] = objective.split('<=')
  const [group = '', part = ''] = name.trim().split('.')
  const places: Readonly<Record<string, unknown>> = {
    starvation: metrics.starvation_percent,
    queue_wait: metrics.queue_wait_s,
    slowdown: metrics.slowdown,
    wake: metrics.wake_s ?? NO_WAKE,
    swaps_per_hour: metrics.swaps_per_hour,
  }
  const place = places[group]
  if (typeof place === 'number') return place
  const value = (place as Readonly<Record<string, unknown>> | null | undefined)?.[part]
  return typeof value === 'number' ? value : null
}

/** Such a value with its unit: `4 min 2 s`, `12.3%`, `2.1`. */
export function objectiveWords(objective: string, value: number | null): string {
  if (value === null) return UNKNOWN
  if (/^(queue_wait|wake)\./.test(objective)) return seconds(value)
  return objective.startsWith('starvation') ? percent(value) : value.toFixed(1)
}

/** Returns every leaf with its dotted path. */
export function flatten(value: unknown, path = ''): readonly (readonly [path: string, cell: Cell])[] {
  if (value === null || typeof value === 'number' || typeof value === 'string') return [[path, value]]
  if (typeof value === 'boolean') return [[path, String(value)]]
  if (typeof value !== 'object') return []
  return Object.entries(value as object).flatMap(([key, inside]) =>
    flatten(inside, path === '' ? key : `${path}.${key}`),
  )
}

export interface Compared {
  readonly name: string
  readonly figures: ReadonlyMap<string, Cell>
}

export interface Difference {
  readonly figure: string
  /** One cell per result, in order; undefined: no such metric. */
  readonly cells: readonly (Cell | undefined)[]
}

export const MAX_COMPARED = 6

/** The metrics that differ. */
export function differencesOf(compared: readonly Compared[]): readonly Difference[] {
  const names = new Set(compared.flatMap(({ figures }) => [...figures.keys()]))
  return [...names]
    .map((figure) => ({ figure, cells: compared.map(({ figures }) => figures.get(figure)) }))
    .filter(({ cells }) => cells.some((cell) => cell !== cells[0]))
}

/** All digits, one row per metric that differs; the cell of a missing metric is empty. */
export function differencesCsv(compared: readonly Compared[]): string {
  const rows = differencesOf(compared).map(({ figure, cells }) => [
    figure,
    ...cells.map((cell) => cell ?? null),
  ])
  return csvOf([['figure', ...compared.map(({ name }) => name)], ...rows])
}

/** The metrics of one run of a sweep. */
export function figuresOfRun({
  metrics,
  digest,
  seed,
  overcommit_percent,
  version,
  virtual_s,
  scenario_sha256,
  trace_sha256,
  settings,
}: SweptRunBody) {
  const about = { overcommit_percent, seed, digest, version, virtual_s, scenario_sha256, trace_sha256 }
  const varied = Object.entries(settings).map(([field, value]) => [field, String(value)] as const)
  return new Map<string, Cell>([...varied, ...flatten(about), ...flatten(metrics)])
}

/**
 * The metrics of the report of any simulation. For a sweep: the recommendation, the results of each
 * percentage, and the digests of the runs.
 */
export function figuresOfReport(report: object): ReadonlyMap<string, Cell> {
  if (!isSweep(report)) return new Map(flatten(report).filter(([path]) => !path.startsWith('timing')))
  return new Map(combinationsOf(report).flatMap(figuresOfCombination))
}

function figuresOfCombination({
  name,
  advice,
  summary,
  runs,
}: Combination): readonly (readonly [string, Cell])[] {
  const suffix = name === '' ? '' : `, ${name}`
  return [
    [`recommended, %${suffix}`, advice.recommended_percent],
    [`knee, %${suffix}`, advice.knee_percent],
    [`objectives${suffix}`, advice.objectives.join(', ')],
    ...summary.flatMap((each): (readonly [string, Cell])[] => [
      [`utilization at ${each.overcommit_percent}%${suffix}, mean`, each.utilization_percent?.mean ?? null],
      [
        `starvation at ${each.overcommit_percent}%${suffix}, mean`,
        each.starvation_percent.total?.mean ?? null,
      ],
      ...(each.unsignalled_wait_percent === undefined
        ? []
        : [
            [
              `unsignalled wait at ${each.overcommit_percent}%${suffix}, mean`,
              each.unsignalled_wait_percent.mean,
            ] as const,
          ]),
      [`queue wait p95 at ${each.overcommit_percent}%${suffix}, mean`, each.queue_wait_s.p95?.mean ?? null],
      ...(each.wake_s === undefined
        ? []
        : [
            [
              `wake p95 at ${each.overcommit_percent}%${suffix}, mean`,
              each.wake_s.p95?.mean ?? null,
            ] as const,
          ]),
      [`swaps per hour at ${each.overcommit_percent}%${suffix}, mean`, each.swaps_per_hour?.mean ?? null],
    ]),
    ...runs.map(
      ({ overcommit_percent, seed, digest }) =>
        [`run hash at ${overcommit_percent}%, seed ${seed}${suffix}`, digest] as const,
    ),
  ]
}

export function isSweep(report: object): report is SweepReportBody {
  return 'advice' in report && 'runs' in report
}
