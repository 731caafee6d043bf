/** The planner's page: parsing of grids, names of figures, and the drawn points. */
import { describe, expect, it, test } from 'vitest'
import type { SweepReportBody, SweptRunBody } from '../../controller/api/simulations/sweep-report-schema.ts'
import { OBJECTIVE_FIGURES, valueOfObjective } from '../../simulator/experiment/advisor/objective.ts'
import { curvesOf, marksOf, paretoOf } from '../../ui/pages/planner/curves.ts'
import { bestOf, combinationsOf } from '../../ui/pages/planner/combinations.ts'
import {
  differencesOf,
  figuresOfReport,
  figuresOfRun,
  flatten,
  objectiveFigure,
  objectiveWords,
} from '../../ui/pages/planner/figures.ts'
import {
  PERCENTS,
  readNumbers,
  readObjectives,
  runsText,
  SEEDS,
  tooMany,
  defaultPercents,
} from '../../ui/pages/planner/grid.ts'
import { secondsLeft } from '../../ui/pages/planner/time-left.ts'
import { traceName, tracedScenario } from '../../ui/pages/planner/traced-scenario.ts'
import { readValues, variedFields } from '../../ui/pages/planner/varied-fields.ts'

function run(percent: number, seed: number, utilization: number | null, starvation: number): SweptRunBody {
  const spread = { mean: seed + 0.5, p50: seed, p95: seed + 2, p99: seed + 3 }
  return {
    overcommit_percent: percent,
    settings: {},
    seed,
    digest: `digest-${percent}-${seed}`,
    scenario_sha256: 'a',
    trace_sha256: null,
    version: '1',
    virtual_s: 3600,
    metrics: {
      jct_s: null,
      queue_wait_s: seed === 3 ? null : spread,
      slowdown: spread,
      makespan_s: null,
      utilization_percent: utilization,
      starvation_percent: {
        total: starvation,
        queue: starvation / 2,
        swap: starvation / 4,
        compute: starvation / 4,
      },
      swaps_per_hour: percent / 10,
      swapped_gib_per_hour: 0.1 + 0.2,
      swap_jain: null,
      tasks: { submitted: 5, completed: 4, failed: 1, unfinished: 0 },
    },
  }
}

const RUNS = [
  run(0, 1, 10, 40),
  run(0, 2, 20, 30),
  run(0, 3, 30, 20),
  run(50, 1, 40, 10),
  run(50, 2, 50, 12),
  run(50, 3, 60, 14),
  run(100, 1, 45, 20),
]

function reportOf(runs: readonly SweptRunBody[]): SweepReportBody {
  const advice = {
    settings: {},
    objectives: ['starvation.total<=20'],
    recommended_percent: 50,
    utilization_percent: null,
    knee_percent: null,
    caveats: [],
    candidates: [],
    text: 'Overcommit 50%.',
  }
  return { runs_done: runs.length, runs_planned: runs.length, summary: [], advice: [advice], runs }
}

describe('a grid of values', () => {
  test.each([
    ['0, 25,50', [0, 25, 50]],
    ['100..200:50, 0', [0, 100, 150, 200]],
    ['1..3, 2', [1, 2, 3]],
    ['0..10:7', [0, 7]],
    ['1000', [1000]],
  ])('is parsed: %s', (text, values) => expect(readNumbers(text, PERCENTS)).toEqual({ ok: true, values }))

  test.each([
    ['', 'at least one'],
    ['1,,2', 'comma'],
    ['1.5', '"1.5"'],
    ['-1', '"-1"'],
    ['abc', '"abc"'],
    ['1001', 'exceeds 1000'],
    ['5..1', 'ends before'],
    ['0..9:0', 'step of 0'],
    ['0..1000', 'at most 200'],
    ['0..150, 200..350', 'at most 200'],
    ['0..9999999999', 'exceeds 1000'],
  ])('is refused: %j', (text, why) => {
    const read = readNumbers(text, PERCENTS)
    expect(read.ok ? '' : read.why).toContain(why)
  })

  it('offers the current setting with the usual percentages', () => {
    expect([defaultPercents(null), defaultPercents(0), defaultPercents(75), defaultPercents(40)]).toEqual([
      '0..100:25',
      '0..100:25',
      '0..100:25',
      '0..100:25, 40',
    ])
  })

  it('has a largest seed and a maximum number of runs', () => {
    expect(readNumbers('4294967295', SEEDS).ok).toBe(true)
    expect(readNumbers('4294967296', SEEDS).ok).toBe(false)
    expect([
      tooMany({ percents: 200, seeds: 10, others: [] }),
      tooMany({ percents: 200, seeds: 11, others: [] }),
    ]).toEqual([null, '200 percentages × 11 seeds = 2200 runs; the limit is 2000.'])
    const others = [
      { field: 'config.idle_swap_out_seconds', values: 3 },
      { field: 'fleet.0.count', values: 1 },
    ]
    expect(runsText({ percents: 1, seeds: 2, others })).toBe(
      '1 percentage × 2 seeds × 3 values of config.idle_swap_out_seconds × 1 value of fleet.0.count = 6 runs',
    )
    expect(tooMany({ percents: 67, seeds: 10, others })).toMatch(/= 2010 runs; the limit is 2000\.$/)
    expect(readObjectives(' starvation.total<=20,\nqueue_wait.p95<=10m, ')).toEqual([
      'starvation.total<=20',
      'queue_wait.p95<=10m',
    ])
  })
})

describe('the figures of the planner', () => {
  it('for objectives are those that the advisor accepts', () => {
    for (const figure of OBJECTIVE_FIGURES)
      for (const { metrics } of RUNS)
        expect(objectiveFigure(`${figure}<=1`, metrics), figure).toBe(
          valueOfObjective({ figure, max: 1 }, metrics as never),
        )
    expect(objectiveFigure('unknown<=1', RUNS[0]!.metrics)).toBeNull()
    expect(objectiveFigure('queue_wait.unknown<=1', RUNS[0]!.metrics)).toBeNull()
    const words = [
      objectiveWords('queue_wait.p95<=5m', 242),
      objectiveWords('starvation.total<=20', 12.34),
      objectiveWords('swaps_per_hour<=3', 2.06),
    ]
    expect([...words, objectiveWords('slowdown.p95<=2', null)]).toEqual(['4 min 2 s', '12.3%', '2.1', '—'])
  })

  it('are compared only where they differ', () => {
    const [a, b] = [RUNS[0]!, run(0, 1, 10, 41)].map((each) => ({ name: 'x', figures: figuresOfRun(each) }))
    expect(differencesOf([a!, a!])).toEqual([])
    expect(differencesOf([a!, b!]).map(({ figure }) => figure)).toEqual([
      'starvation_percent.total',
      'starvation_percent.queue',
      'starvation_percent.swap',
      'starvation_percent.compute',
    ])
    expect(
      differencesOf([
        { name: 'x', figures: new Map([['y', 1]]) },
        { name: 'z', figures: new Map() },
      ]),
    ).toEqual([{ figure: 'y', cells: [1, undefined] }])
    expect(flatten({ a: { b: true, c: null }, d: undefined })).toEqual([
      ['a.b', 'true'],
      ['a.c', null],
    ])
  })

  it('in reports have the runs of a sweep by digest, and a run without its timing', () => {
    const summary = {
      settings: {},
      overcommit_percent: 0,
      utilization_percent: { mean: 20 },
      starvation_percent: { total: null },
      queue_wait_s: { p95: null },
      swaps_per_hour: null,
    }
    const found = figuresOfReport({ ...reportOf(RUNS), summary: [summary] })
    expect(found.get('run hash at 50%, seed 2')).toBe('digest-50-2')
    expect([
      found.get('recommended, %'),
      found.get('utilization at 0%, mean'),
      found.get('starvation at 0%, mean'),
    ]).toEqual([50, 20, null])
    expect(found.has('unsignalled wait at 0%, mean')).toBe(false)
    const unaware = { ...summary, unsignalled_wait_percent: { mean: 7, p10: 7, p90: 7, p95: 7 } }
    expect(
      figuresOfReport({ ...reportOf(RUNS), summary: [unaware] }).get('unsignalled wait at 0%, mean'),
    ).toBe(7)
    expect(figuresOfReport({ digest: 'x', timing: { wall_s: 3 } })).toEqual(new Map([['digest', 'x']]))
  })
})

describe('the charts of the planner', () => {
  it('have the median and the band of each percentage', () => {
    const { x, utilization, starvation } = curvesOf([...RUNS, run(200, 1, null, 3)])
    expect(x).toEqual([0, 50, 100, 200])
    expect(utilization).toEqual({
      values: [20, 50, 45, null],
      band: [
        [10, 40, 45, null],
        [30, 60, 45, null],
      ],
    })
    expect(starvation.values).toEqual([30, 12, 20, 3])
  })

  it('name the percentages on the Pareto front', () => {
    expect(paretoOf([...RUNS, run(150, 1, 45, 20)])).toEqual({
      x: [20, 45, 50],
      best: [null, null, 12],
      others: [30, 20, null],
      names: ['0%', '100, 150%', '50%'],
    })
  })

  it('mark the current and recommended percentages and the knee', () => {
    const [advice] = reportOf(RUNS).advice as [SweepReportBody['advice'][number]]
    expect(marksOf(advice, 0).map(({ name }) => name)).toEqual(['current 0%', 'recommended 50%'])
    expect(
      marksOf({ ...advice, recommended_percent: null, knee_percent: 25 }, null).map(({ name }) => name),
    ).toEqual(['knee 25%'])
  })
})

test('estimate the remaining time from the pace so far', () => {
  expect(secondsLeft({ at: 0, progress: 0.2 }, { at: 10_000, progress: 0.6 })).toBeCloseTo(10)
  expect(secondsLeft({ at: 0, progress: 0 }, { at: 500, progress: 0.5 })).toBeNull()
  expect(secondsLeft({ at: 0, progress: 0.5 }, { at: 9_000, progress: 0.5 })).toBeNull()
  expect(secondsLeft({ at: 0, progress: 1 }, { at: 0, progress: 1 })).toBe(0)
})

test('A trace is combined with the current fleet', () => {
  const made = tracedScenario(
    { config: { max_tasks_per_gpu: 4 }, fleet: [{ name: 'a' }], workload: [{ task: {} }] },
    'jobs',
    'serving',
  )
  expect(made).toMatchObject({
    scenario: 'trace-jobs',
    config: { max_tasks_per_gpu: 4 },
    fleet: [{ name: 'a' }],
    workload: [{ trace: 'traces/jobs.trace.jsonl', activity: 'serving' }],
  })
  expect(tracedScenario({}, 'jobs', null)).toMatchObject({
    config: {},
    fleet: [],
    workload: [{ trace: 'traces/jobs.trace.jsonl' }],
  })
  expect([traceName('Jobs 2026.txt'), traceName('cluster.trace.jsonl.gz'), traceName('日本.csv')]).toEqual([
    'jobs-2026',
    'cluster',
    'trace',
  ])
})

describe('an additional varied field', () => {
  const text = `scenario: x
version: 1
clock: { until: 6h, drain: false, start: 2026-01-01T00:00:00Z }
fleet:
  - { name: "n-{i}", count: 2, gpus: 4, gpu: { model: A100, vram_mib: 40Gi } }
config: { default_vram_overcommit_percent: 50, idle_swap_out_seconds: 300 }
workload:
  - { generate: poisson, rate_per_hour: 20, duration: { exponential: { mean: 20m } } }
`

  it('is a field of the scenario, with its path and current value', () => {
    const fields = variedFields(text)
    expect(fields.slice(0, 8)).toEqual([
      { path: 'config.idle_swap_out_seconds', now: '300' },
      { path: 'fleet.0.count', now: '2' },
      { path: 'fleet.0.gpus', now: '4' },
      { path: 'fleet.0.gpu.model', now: 'A100' },
      { path: 'fleet.0.gpu.vram_mib', now: '40Gi' },
      { path: 'workload.0.rate_per_hour', now: '20' },
      { path: 'workload.0.duration.exponential.mean', now: '20m' },
      { path: 'clock.until', now: '6h' },
    ])
    expect(fields).toContainEqual({ path: 'config.max_tasks_per_gpu', now: null })
    expect(fields.map(({ path }) => path)).not.toContain('config.default_vram_overcommit_percent')
    expect(variedFields({ fleet: [{ count: 3 }] })[0]).toEqual({ path: 'fleet.0.count', now: '3' })
    expect(variedFields({ fleet: Array.from({ length: 900 }, () => ({ count: 1 })) }).length).toBeLessThan(
      160,
    )
    expect([variedFields(null), variedFields('scenario: ['), variedFields('- 1').length]).toEqual([[], [], 4])
  })

  it('accepts values as the command line does', () => {
    expect(readValues('60..180:60, 300, 10m, true, null, -1, 0.5, 300')).toEqual({
      ok: true,
      values: [60, 120, 180, 300, '10m', true, null, -1, 0.5],
    })
    for (const wrong of ['', '1,,2', '5..1', '1..5:0', '1..500', '1..150, 200..350'])
      expect(readValues(wrong).ok, wrong).toBe(false)
  })

  it('yields combinations, of which the best keeps its objectives with the highest utilization', () => {
    const [advice] = reportOf(RUNS).advice as [SweepReportBody['advice'][number]]
    const band = (mean: number) => ({ mean, p10: mean, p90: mean, p95: mean })
    const of = (count: number) => ({ 'fleet.0.count': count })
    const report: SweepReportBody = {
      ...reportOf([1, 2, 4].flatMap((count) => RUNS.map((each) => ({ ...each, settings: of(count) })))),
      advice: [
        { ...advice, settings: of(1), recommended_percent: null },
        { ...advice, settings: of(2), utilization_percent: band(60) },
        { ...advice, settings: of(4), utilization_percent: band(40) },
      ],
    }
    const combinations = combinationsOf(report)
    expect(combinations.map(({ name, runs }) => [name, runs.length])).toEqual([
      ['fleet.0.count=1', 7],
      ['fleet.0.count=2', 7],
      ['fleet.0.count=4', 7],
    ])
    expect(bestOf(combinations)?.name).toBe('fleet.0.count=2')
    expect(bestOf(combinations.slice(0, 1))).toBeNull()
    expect(figuresOfReport(report).get('run hash at 50%, seed 2, fleet.0.count=4')).toBe('digest-50-2')
  })
})
