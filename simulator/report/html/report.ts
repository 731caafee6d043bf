/** The HTML report of a sweep: the recommendation, its reasons, charts, and the figures of each chart. */
import type { Advice, JudgedObjective } from '../../experiment/advisor/advisor.ts'
import type { Band, Settings, SweepRun, SweepSummary } from '../../experiment/sweep/sweep.ts'
import { adviceNotes, adviceSentence, figureOf, noneSentence, shownFigure } from '../advice-text.ts'
import { shownNumber } from '../plain-text.ts'
import { hasUnsignalledWait } from '../sweep-table.ts'
import { type ChartLine, DOTS, lineChart, type LineChart } from './line-chart.ts'
import { bestOf, type Combination, combinationsOf, takenOf } from './combinations.ts'
import { markup, Markup } from './markup.ts'
import { CHART_SCRIPT } from './chart-script.ts'
import { type ChartLibrary, facts, page, table } from './page.ts'
import { SharedMarks } from './shared-marks.ts'

export interface HtmlReportInput {
  /** Name of the scenario. */
  readonly name: string
  /** At least one. */
  readonly runs: readonly SweepRun[]
  readonly summary: readonly SweepSummary[]
  /** One for each combination of the other fields. */
  readonly advice: ReadonlyArray<Advice & { readonly settings: Settings }>
  /** uPlot, from its package; null: the charts remain SVG. */
  readonly library: ChartLibrary | null
}

/** Number of combinations that are shown open; of more, only the best. */
const MOST_OPEN = 4

/** The same input yields the same bytes: the page contains no date. */
export function htmlReport({ name, runs, summary, advice, library }: HtmlReportInput): string {
  const shared = new SharedMarks(DOTS)
  const combinations = combinationsOf(summary, advice)
  const best = bestOf(combinations)
  const sections = combinations.map((each) => {
    const section = sectionOf(each, shared)
    if (combinations.length === 1) return section
    const isOpen = combinations.length <= MOST_OPEN || each === best
    // The anchor is inside, so that a link to it opens the section around it.
    return markup`<details${isOpen ? new Markup(' open') : null}><summary>${each.title}</summary>
      <div id="${each.place}">${section}</div></details>`
  })
  const overview = combinations.length > 1 ? overviewOf(combinations, best) : null
  return page(
    `${name}: overcommit sweep`,
    markup`<h1>${name}: which overcommit percentage?</h1>
      <p class="soft">
        A sweep of the production controller in virtual time. The same seeds were run at every percentage, so
        that two percentages differ in nothing else.
      </p>
      ${shared.all()}${overview}${sections}${sourceOf(runs)}`,
    library === null ? [] : [library.style],
    library === null ? [] : [library.script, CHART_SCRIPT],
  )
}

function sectionOf({ advice, summary }: Combination, shared: SharedMarks): Markup {
  const marks = [
    ...(advice.recommended_percent === null ? [] : [{ x: advice.recommended_percent, label: 'recommended' }]),
    ...(advice.knee_percent === null ? [] : [{ x: advice.knee_percent, label: 'knee' }]),
  ]
  const advised = advice.recommended_percent === null ? 'advice none' : 'advice'
  const charts = chartsOf(advice, summary)
  return markup`<p class="${advised}">${adviceSentence(advice)}</p>
    <ul>
      ${adviceNotes(advice).map((note) => markup`<li>${note}</li>`)}
    </ul>
    ${judgementOf(advice)}
    ${charts.map(({ chart, values }) => lineChart({ ...chart, xTitle: X_TITLE, marks }, values, shared))}`
}

const shownObjective = ({ objective, p95, keeps }: JudgedObjective): Markup =>
  keeps
    ? markup`<span class="good">${shownFigure(figureOf(objective), p95)} kept</span>`
    : markup`<span class="bad">${shownFigure(figureOf(objective), p95)} broken</span>`

/** The result of each combination, with a link to its section. */
function overviewOf(combinations: readonly Combination[], best: Combination | null): Markup {
  const objectives = combinations[0]?.advice.objectives ?? []
  const said =
    best === null
      ? noneSentence(combinations.map((each) => each.advice))
      : `Best of ${combinations.length} combinations: ${best.title}. ${adviceSentence(best.advice)}`
  return markup`<p class="advice${best === null ? ' none' : ''}">${said}</p>${table(
    'Each combination at the percentage to take, or at the one that comes nearest',
    ['combination', 'overcommit to take', 'utilization, mean', ...objectives, ''],
    combinations.map((each) => {
      const { percent, isTaken, candidate } = takenOf(each.advice)
      return [
        markup`<a href="#${each.place}">${each.title}</a>`,
        percent === null ? 'none' : isTaken ? `${percent}%` : `none; nearest ${percent}%`,
        utilizationText(candidate?.utilization_percent ?? null),
        ...(candidate?.objectives.map(shownObjective) ?? objectives.map(() => '–')),
        each === best ? 'best' : null,
      ]
    }),
  )}`
}

/** The objectives at each percentage: the basis of the recommendation. */
function judgementOf({ candidates, objectives, recommended_percent, knee_percent }: Advice): Markup {
  return table(
    'Mean utilization over the seeds, and the 95th percentile of each objective (nearest rank)',
    ['overcommit', 'seeds', 'utilization', ...objectives, ''],
    candidates.map((each) => [
      `${each.overcommit_percent}%`,
      each.seeds,
      utilizationText(each.utilization_percent),
      ...each.objectives.map(shownObjective),
      [
        each.overcommit_percent === recommended_percent ? 'recommended ' : null,
        each.overcommit_percent === knee_percent ? 'knee' : null,
      ],
    ]),
  )
}

function utilizationText(band: Band | null): string {
  return band === null ? '–' : `${band.mean.toFixed(2)}%`
}

interface Section {
  readonly chart: Omit<LineChart, 'xTitle' | 'marks'>
  readonly values: Markup
}

const X_TITLE = 'overcommit, %'

/** A metric of the summary as a line with its band. */
interface Figure {
  readonly name: string
  readonly valueOf: (summary: SweepSummary) => Band | null
}

const STARVATION: readonly Figure[] = [
  { name: 'total', valueOf: (s) => s.starvation_percent.total },
  { name: 'queue', valueOf: (s) => s.starvation_percent.queue },
  { name: 'swap', valueOf: (s) => s.starvation_percent.swap },
  { name: 'compute', valueOf: (s) => s.starvation_percent.compute },
]
const UTILIZATION: readonly Figure[] = [{ name: 'utilization', valueOf: (s) => s.utilization_percent }]
const WAITS: readonly Figure[] = [
  { name: 'p50', valueOf: (s) => s.queue_wait_s.p50 },
  { name: 'p95', valueOf: (s) => s.queue_wait_s.p95 },
]
const UNSIGNALLED_WAIT: readonly Figure[] = [
  { name: 'unsignalled wait', valueOf: (s) => s.unsignalled_wait_percent ?? null },
]
const SWAPS: readonly Figure[] = [{ name: 'swap-outs an hour', valueOf: (s) => s.swaps_per_hour }]

function chartsOf(advice: Advice, summary: readonly SweepSummary[]): Section[] {
  const section = (title: string, unit: string, figures: readonly Figure[], prefix: string): Section => ({
    chart: {
      title,
      unit,
      lines: figures.map((figure) => chartLineOf(figure, summary)),
      limits: limitsOf(advice, prefix),
    },
    values: valuesOf(figures, summary),
  })
  return [
    section('Utilization of the GPUs: mean over the seeds, band p10–p90', '%', UTILIZATION, 'utilization'),
    section(
      'Starvation and its parts: means over the seeds, band p10–p90',
      '%',
      STARVATION,
      'starvation.total',
    ),
    ...(summary.some(hasUnsignalledWait)
      ? [
          section(
            'Unsignalled wait: time that swapped-out tasks had work without signalling it, mean ' +
              'over the seeds, band p10–p90',
            '%',
            UNSIGNALLED_WAIT,
            '',
          ),
        ]
      : []),
    section('Queue wait: means over the seeds, band p10–p90', 's', WAITS, 'queue_wait.p95'),
    section('Swaps: mean over the seeds, band p10–p90', 'an hour', SWAPS, 'swaps_per_hour'),
  ]
}

function chartLineOf({ name, valueOf }: Figure, summary: readonly SweepSummary[]): ChartLine {
  const points = summary.flatMap((each) => {
    const band = valueOf(each)
    return band === null ? [] : [{ x: each.overcommit_percent, y: band.mean, low: band.p10, high: band.p90 }]
  })
  return { name, points }
}

/** @param figure metric that objectives may name; empty: none */
function limitsOf({ candidates }: Advice, figure: string): LineChart['limits'] {
  const objectives = candidates[0]?.objectives ?? []
  return objectives
    .filter(({ objective }) => figureOf(objective) === figure)
    .map(({ objective, max }) => ({ y: max, label: objective }))
}

/** Also the data of the chart: chart-script.ts reads it from here. */
function valuesOf(figures: readonly Figure[], summary: readonly SweepSummary[]): Markup {
  const head = [X_TITLE, ...figures.flatMap(({ name }) => [name, 'p10', 'p90', 'p95'])]
  const rows = summary.map((each) => [
    each.overcommit_percent,
    ...figures.flatMap(({ valueOf }) => {
      const band = valueOf(each)
      return [band?.mean, band?.p10, band?.p90, band?.p95].map((value) =>
        shownNumber(value ?? null, digitsOf(value ?? 0)),
      )
    }),
  ])
  return table(null, head, rows)
}

/** More digits of a mean over seeds are meaningless; runs.csv has all. */
function digitsOf(value: number): number {
  if (value >= 1000) return 0
  return value >= 100 ? 1 : 2
}

/** Returns the information that a reader needs to repeat the sweep. */
function sourceOf(runs: readonly SweepRun[]): Markup {
  const [first] = runs as readonly [SweepRun]
  const seeds = [...new Set(runs.map(({ seed }) => seed))].sort((a, b) => a - b)
  return markup`<h2>Source</h2>
    ${facts([
      ['runs', runs.length],
      ['seeds', seeds.join(', ')],
      ['scenario, SHA-256', first.scenario_sha256 ?? '–'],
      ['traces, SHA-256', first.trace_sha256 ?? '–'],
      ['version', first.version],
    ])}
    <p class="soft">
      Every run with all its digits is a row of runs.csv. Recommended is the percentage with the highest mean
      of utilization_percent among those at which the nearest-rank 95th percentile over the seeds of every
      objective's figure is at most its maximum; of two that are equal, the lower. The knee is found with
      Kneedle (Satopää, Albrecht, Irwin, Raghavan, ICDCSW 2011) on the means. Differences between percentages
      are paired by seed, with Student's 95% interval.
    </p>`
}
