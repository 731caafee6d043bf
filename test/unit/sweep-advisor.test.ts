import { describe, expect, it } from 'vitest'
import { advise } from '../../simulator/experiment/advisor/advisor.ts'
import type { Advice, AdvisorInput } from '../../simulator/experiment/advisor/advisor.ts'
import { idlenessOf, longestIdleMs } from '../../simulator/experiment/advisor/idleness.ts'
import { kneeOf } from '../../simulator/experiment/advisor/knee.ts'
import {
  DEFAULT_OBJECTIVES,
  objectiveText,
  parseObjective,
  valueOfObjective,
} from '../../simulator/experiment/advisor/objective.ts'
import type { Objective } from '../../simulator/experiment/advisor/objective.ts'
import { pairedDifference } from '../../simulator/experiment/advisor/paired-difference.ts'
import { adviceNotes, adviceSentence, adviceTable } from '../../simulator/report/advice-text.ts'
import { runsCsv } from '../../simulator/report/runs-csv.ts'
import { makeSource } from '../../simulator/scenario/arrivals.ts'
import type { StartTask } from '../../simulator/scenario/generate.ts'
import type { SimTask } from '../../simulator/scenario/scenario.ts'
import type { SweepRun } from '../../simulator/experiment/sweep/sweep.ts'
import type { Work } from '../../simulator/trace/trace-format.ts'
import { sweptRun } from '../support/swept-run.ts'

/** Utilization and starvation at each percentage, with a small offset for each seed. */
function runs(
  curve: ReadonlyArray<readonly [percent: number, utilization: number, starvation: number]>,
  seeds = 5,
  noise = 0,
): SweepRun[] {
  return curve.flatMap(([percent, utilization, starvation]) =>
    Array.from({ length: seeds }, (_, i) => {
      // Odd at one percentage and even at the next: a difference that the percentage does not cause.
      const wobble = noise * (((percent / 20 + i) % 2) - 0.5)
      return sweptRun({
        percent,
        seed: i + 1,
        utilization: utilization + i / 10 + wobble,
        starvation: starvation + i,
        swapsPerHour: percent / 10,
      })
    }),
  )
}

function adviceOn(swept: readonly SweepRun[], input: Partial<AdvisorInput> = {}): Advice {
  return advise({ runs: swept, objectives: DEFAULT_OBJECTIVES, idleness: null, ...input })
}

const CURVE = [
  [0, 30, 4],
  [20, 45, 5],
  [40, 52, 8],
  [60, 55, 14],
  [80, 56, 18],
  [100, 56.5, 30],
] as const

describe('the advisor', () => {
  it('recommends the highest mean utilization that keeps its objective in 95 % of the seeds', () => {
    const advice = adviceOn(runs(CURVE))
    // 80 %: starvation from 18 to 22 over the seeds. 60 %: from 14 to 18.
    expect(advice).toMatchObject({
      recommended_percent: 60,
      objectives: ['starvation.total<=20'],
      caveats: [],
    })
    expect(advice.candidates.map(({ overcommit_percent, keeps }) => [overcommit_percent, keeps])).toEqual([
      [0, true],
      [20, true],
      [40, true],
      [60, true],
      [80, false],
      [100, false],
    ])
    expect(advice.utilization_percent?.p10).toBe(55)
    expect(advice.utilization_percent?.p90).toBe(55.4)
    expect(advice.gain?.over_percent).toBe(0)
    expect(advice.gain?.difference.mean).toBeCloseTo(25)
    expect(adviceSentence(advice)).toBe(
      'Overcommit 60% instead of 0%: utilization rises from 30.2% to 55.2%, starvation rises ' +
        'from 6.0% to 16.0%. It has the highest utilization of all percentages that meet ' +
        'starvation.total<=20 in 95% of the seeds: 55.2% utilization (p10–p90 over 5 seeds: ' +
        '55.0–55.4%), with starvation of 18.0% at the 95th percentile.',
    )
    expect(adviceNotes(advice)).toEqual(['Second opinion: the knee of mean utilization (Kneedle) is at 40%.'])
    expect(adviceTable(advice).split('\n')[4]).toMatch(
      /^60% +55\.2% +55\.0% +55\.4% +18\.0% kept +← recommended$/,
    )
  })

  it('depends only on the table of runs, not on the order of the runs', () => {
    const swept = runs(CURVE, 7, 0.3)
    const advice = adviceOn(swept)
    expect(adviceOn(swept.toReversed())).toEqual(advice)
    const [head, ...rows] = runsCsv(swept).trim().split('\n')
    const column = (name: string): number => (head as string).split(',').indexOf(name)
    const table = rows.map((row) => row.split(',').map(Number))
    const kept = [...new Set(table.map((row) => row[column('overcommit_percent')] as number))].filter(
      (percent) => {
        const values = table
          .filter((row) => row[0] === percent)
          .map((row) => row[column('starvation_percent')] as number)
        values.sort((a, b) => a - b)
        return (values[Math.ceil(0.95 * values.length) - 1] as number) <= 20
      },
    )
    const mean = (percent: number): number => {
      const values = table
        .filter((row) => row[0] === percent)
        .map((row) => row[column('utilization_percent')] as number)
      return values.reduce((sum, each) => sum + each, 0) / values.length
    }
    kept.sort((a, b) => mean(b) - mean(a) || a - b)
    expect(advice.recommended_percent).toBe(kept[0])
    expect(advice.utilization_percent?.mean).toBeCloseTo(mean(kept[0] as number), 12)
  })

  it('says that no percentage keeps the objective, and which one is closest', () => {
    const advice = adviceOn(runs(CURVE), { objectives: [parse('starvation.total<=3')] })
    expect(advice).toMatchObject({ recommended_percent: null, utilization_percent: null, gain: null })
    expect(advice.caveats).toEqual([
      { kind: 'none_keeps', nearest_percent: 0, objective: 'starvation.total<=3', p95: 8 },
    ])
    expect(adviceSentence(advice)).toBe(
      'None of the overcommit percentages tried meets starvation.total<=3 in 95% of the seeds.',
    )
    expect(adviceNotes(advice).at(-1)).toContain(
      'The closest percentage is 0%: its starvation is 8.0% at the 95th percentile (objective: ' +
        'starvation.total<=3).',
    )
  })

  it('keeps all of several objectives; an objective without a figure is missed', () => {
    const both = [parse('starvation.total<=50'), parse('swaps_per_hour<=4')]
    expect(adviceOn(runs(CURVE), { objectives: both }).recommended_percent).toBe(40)
    const missing = adviceOn(runs(CURVE), { objectives: [parse('queue_wait.p95<=10m')] })
    expect(missing.caveats).toEqual([
      { kind: 'none_keeps', nearest_percent: 0, objective: 'queue_wait.p95<=10m', p95: null },
    ])
    expect(adviceTable(missing)).toContain('– broken')
  })

  it('says that the seeds do not separate two percentages, and how many seeds would', () => {
    const advice = adviceOn(runs([...CURVE.slice(0, 3), [60, 52.1, 9]], 5, 2))
    expect(advice.recommended_percent).toBe(60)
    const [caveat] = advice.caveats
    expect(caveat).toMatchObject({
      kind: 'too_few_seeds',
      seeds: 5,
      ties: [{ overcommit_percent: 40, difference: { pairs: 5 } }],
    })
    expect(adviceNotes(advice)[1]).toMatch(
      new RegExp(
        /^5 seeds are too few to distinguish the utilization at 60% from that at 40% \(\+\d\.\d\d /.source +
          /± \d\.\d\d points, about \d+ seeds needed\)\.$/.source,
      ),
    )
    const many = adviceOn(runs([...CURVE.slice(0, 3), [60, 52.1, 9]], 5, 0))
    expect(many.caveats.some(({ kind }) => kind === 'too_few_seeds')).toBe(false)
  })

  it('reports that identical seeds are not a sample', () => {
    const alike = runs(CURVE).map((run) => ({
      ...run,
      metrics: {
        ...run.metrics,
        ...sweptRun({
          percent: 0,
          seed: 1,
          utilization: run.overcommit_percent,
          starvation: 1,
          swapsPerHour: 1,
        }).metrics,
      },
    }))
    const advice = adviceOn(alike)
    expect(advice.caveats).toEqual([
      { kind: 'seeds_alike', seeds: 5 },
      { kind: 'highest_tried', overcommit_percent: 100 },
    ])
    expect(adviceNotes(advice)[1]).toContain('All 5 seeds gave the same figures')
  })

  it('reports that one seed is not a sample', () => {
    const advice = adviceOn(runs(CURVE, 1))
    expect(advice.caveats).toContainEqual(expect.objectContaining({ kind: 'too_few_seeds', seeds: 1 }))
    expect(adviceNotes(advice)[1]).toBe(
      'One seed does not show the effect of chance. Run at least two seeds, preferably ten.',
    )
  })

  it('says that overcommit cannot help a workload that is never idle', () => {
    const idleness = {
      tasks: 10,
      isComplete: true,
      swappable: 0,
      idlePercent: 3,
      exclusivePercent: 0,
      idlePeriodMs: 300_000,
    }
    const still = runs(CURVE).map((run) => ({ ...run, metrics: { ...run.metrics, swaps_per_hour: 0 } }))
    const advice = adviceOn(still, { idleness })
    expect(advice.caveats).toContainEqual({ kind: 'no_idleness', idle_period_s: 300, idle_percent: 3 })
    expect(adviceNotes(advice).join(' ')).toContain('overcommit cannot help')
    expect(adviceOn(runs(CURVE), { idleness: { ...idleness, swappable: 1 } }).caveats).toEqual([])
  })

  it('says that no task was ever swapped out, or that the percentage changed nothing', () => {
    const still = runs(CURVE).map((run) => ({ ...run, metrics: { ...run.metrics, swaps_per_hour: 0 } }))
    expect(adviceOn(still).caveats).toEqual([{ kind: 'never_swapped' }])
    const same = runs(CURVE.map(([percent]) => [percent, 30, 2] as const)).map((run) => ({
      ...run,
      metrics: { ...run.metrics, swaps_per_hour: 1 },
    }))
    const advice = adviceOn(same)
    expect(advice.caveats).toEqual([{ kind: 'no_effect' }])
    expect(advice.recommended_percent).toBe(0)
    expect(adviceNotes(advice).at(-1)).toContain('All percentages have the same figures')
  })

  it('says nothing about idleness without tasks, from a part of them, or against the runs', () => {
    const idleness = {
      tasks: 10,
      isComplete: true,
      swappable: 0,
      idlePercent: 3,
      exclusivePercent: 0,
      idlePeriodMs: 300_000,
    }
    const still = runs(CURVE).map((run) => ({ ...run, metrics: { ...run.metrics, swaps_per_hour: 0 } }))
    const kindsOf = (swept: readonly SweepRun[], about: typeof idleness): string[] =>
      adviceOn(swept, { idleness: about }).caveats.map(({ kind }) => kind)
    expect(kindsOf(still, idleness)).toEqual(['no_idleness'])
    expect(kindsOf(still, { ...idleness, tasks: 0 })).toEqual(['never_swapped'])
    expect(kindsOf(still, { ...idleness, isComplete: false })).toEqual(['never_swapped'])
    expect(kindsOf(runs(CURVE), idleness)).toEqual([])
  })

  it('names the largest gain first: a queue wait of hours before 0.01 points of utilization', () => {
    const wait = (p95: number) => ({ mean: p95 / 2, p50: p95 / 2, p95, p99: p95 })
    const at = (percent: number, utilization: number, starvation: number, p95: number): SweepRun[] =>
      [1, 2, 3].map((seed) =>
        sweptRun({
          percent,
          seed,
          utilization: utilization + seed / 100,
          starvation,
          queueWait: wait(p95 + seed),
          swapsPerHour: 3,
        }),
      )
    const advice = adviceOn([
      ...at(0, 31.5, 73, 23_818),
      ...at(150, 31.54, 19, 673),
      ...at(200, 31.52, 19, 673),
    ])
    expect(advice.changes.map(({ figure, verdict }) => [figure, verdict])).toEqual([
      ['queue_wait.p95', 'better'],
      ['starvation.total', 'better'],
      ['utilization', 'same'],
    ])
    expect(adviceSentence(advice)).toMatch(
      new RegExp(
        /^Overcommit 150% instead of 0%: queue wait p95 falls from 6\.6 h to 11\.3 min, /.source +
          /starvation falls from 73\.0% to 19\.0%, utilization stays at 31\.6% \(\+0\.04 ± /.source +
          /0\.00 points\)\. It has the highest/.source,
      ),
    )
  })

  it('finds no knee within the spread of the seeds or in a negligible rise', () => {
    // From 31 to 31.6, while the seeds differ by 2.
    const flat = [[0, 31], [50, 31.5], [100, 31.55], [150, 31.6]] as const // prettier-ignore
    const spread = flat.flatMap(([percent, utilization]) =>
      [0, 1, 2].map((seed) => sweptRun({ percent, seed, utilization: utilization + seed, swapsPerHour: 1 })),
    )
    expect(adviceOn(spread).knee_percent).toBeNull()
    expect(
      adviceOn(
        flat.map(([percent, utilization]) => sweptRun({ percent, seed: 1, utilization, swapsPerHour: 1 })),
      ).knee_percent,
    ).toBeNull()
    const steep = flat.map(([percent, utilization]) =>
      sweptRun({ percent, seed: 1, utilization: 10 * utilization, swapsPerHour: 1 }),
    )
    expect(adviceOn(steep).knee_percent).toBe(50)
  })

  it('says in its first sentence that most GPU-hours are of exclusive tasks', () => {
    const idleness = {
      tasks: 10,
      isComplete: true,
      swappable: 1,
      idlePercent: 3,
      exclusivePercent: 74.04,
      idlePeriodMs: 300_000,
    }
    const advice = adviceOn(runs(CURVE), { idleness })
    expect(advice.caveats[0]).toEqual({ kind: 'mostly_exclusive', exclusive_percent: 74.04 })
    expect(adviceSentence(advice)).toMatch(
      new RegExp(
        /^74\.0% of the GPU-hours belong to tasks that take whole GPUs, and overcommit /.source +
          /has no effect on them\. Overcommit 60% /.source,
      ),
    )
    expect(adviceNotes(advice).join(' ')).not.toContain('GPU-hours')
    expect(adviceOn(runs(CURVE), { idleness: { ...idleness, exclusivePercent: 50 } }).caveats).toEqual([])
  })

  it('recommends nothing while tasks fit nowhere, and quotes the run with most of them', () => {
    const swept = runs(CURVE).map((run, i) => ({
      ...run,
      metrics: { ...run.metrics, tasks: { ...run.metrics.tasks, submitted: 9, fit_nowhere: i % 4 } },
    }))
    expect(adviceOn(swept).caveats).toContainEqual({ kind: 'fit_nowhere', tasks: 3, submitted: 9 })
    expect(adviceOn(swept)).toMatchObject({
      recommended_percent: null,
      utilization_percent: null,
      gain: null,
      changes: [],
    })
    expect(adviceSentence(adviceOn(swept))).toBe(
      'No recommendation: 3 of 9 tasks do not fit on any node that is up, even if the node is empty. Add ' +
        'nodes or GPUs that are large enough, or leave these tasks out.',
    )
    expect(adviceNotes(adviceOn(swept)).join('\n')).toContain(
      'Starvation and waits do not include the 3 tasks that do not fit on any node',
    )
    expect(adviceTable(adviceOn(swept))).not.toContain('recommended')
  })

  it('says that a higher percentage may be better, and that seeds differ between percentages', () => {
    const rising = runs(CURVE.slice(0, 3))
    expect(adviceOn(rising).caveats).toEqual([{ kind: 'highest_tried', overcommit_percent: 40 }])
    expect(adviceOn(rising.slice(1)).caveats.map(({ kind }) => kind)).toEqual([
      'highest_tried',
      'uneven_seeds',
    ])
    expect(adviceNotes(adviceOn(rising.slice(1))).slice(1)).toEqual([
      '40% is the highest percentage that was tried: a higher one may be better.',
      'The percentages were not all run with the same seeds, so their means cannot be compared seed by seed.',
    ])
  })
})

function parse(text: string): Objective {
  const objective = parseObjective(text)
  if (objective === null) throw new Error(text)
  return objective
}

describe('an objective', () => {
  it.each([
    ['starvation.total<=20', 'starvation.total', 20],
    ['starvation <= 12.5', 'starvation.total', 12.5],
    ['queue_wait.p95<=10m', 'queue_wait.p95', 600],
    ['wake.p95<=5s', 'wake.p95', 5],
    ['queue_wait.p99<=90', 'queue_wait.p99', 90],
    ['slowdown.p95<=3', 'slowdown.p95', 3],
  ])('%s is parsed, and formatted so that it is parsed again', (text, figure, max) => {
    const objective = parse(text)
    expect(objective).toEqual({ figure, max })
    expect(parse(objectiveText(objective))).toEqual(objective)
  })

  it.each([
    '',
    'starvation',
    'starvation.total<20',
    'starvation.total>=20',
    'starvation.total<=10m',
    'toString<=1',
    'queue_wait.p95<=1.5h',
  ])('The expression %s is invalid', (text) => {
    expect(parseObjective(text)).toBeNull()
  })

  it('reads its figure', () => {
    const { metrics } = sweptRun({ percent: 0, seed: 1, starvation: 7 })
    expect(valueOfObjective(parse('starvation.total<=1'), metrics)).toBe(7)
    expect(valueOfObjective(parse('slowdown.mean<=1'), metrics)).toBeNull()
  })
})

describe('the knee of a curve', () => {
  it("is at the point of the paper's example", () => {
    // Figure 2: y = −1 / (x + 0.1) + 5 at ten points from 0 to 1, whose knee is at 0.22.
    const points = Array.from({ length: 10 }, (_, i) => ({ x: i / 9, y: -1 / (i / 9 + 0.1) + 5 }))
    expect(kneeOf(points)).toBe(2 / 9)
  })

  it('does not exist in a line, an accelerating or falling curve, or with two points', () => {
    const of = (y: (x: number) => number): number | null =>
      kneeOf([0, 1, 2, 3, 4, 5, 6].map((x) => ({ x, y: y(x) })))
    expect([of((x) => 2 * x), of((x) => x * x), of((x) => -x), of(() => 3)]).toEqual([null, null, null, null])
    expect(kneeOf([])).toBeNull()
    expect(
      kneeOf([
        { x: 0, y: 0 },
        { x: 1, y: 1 },
      ]),
    ).toBeNull()
  })

  it('is searched where the curve rises, ignoring values after the peak', () => {
    const y = [0, 60, 80, 85, 88, 90, 50, 20]
    expect(kneeOf(y.map((each, x) => ({ x, y: each })))).toBe(
      kneeOf(y.slice(0, 6).map((each, x) => ({ x, y: each }))),
    )
  })
})

describe('a paired difference', () => {
  it("has Student's interval", () => {
    // Five pairs: t = 2.776, deviation 1.5811.
    const difference = pairedDifference([1, 2, 3, 4, 5])
    expect(difference).toMatchObject({ pairs: 5, mean: 3, told_apart: true, pairs_needed: null })
    expect(difference.half_width).toBeCloseTo(1.963, 3)
  })

  it('is not significant for two contradicting pairs, one pair or none', () => {
    expect(pairedDifference([1, -1])).toMatchObject({ mean: 0, told_apart: false, pairs_needed: null })
    expect(pairedDifference([5])).toMatchObject({ mean: 5, half_width: null, told_apart: false })
    expect(pairedDifference([])).toMatchObject({ pairs: 0, mean: 0, told_apart: false })
    expect(pairedDifference([0, 0, 0]).told_apart).toBe(false)
    expect(pairedDifference([2, 2, 2]).told_apart).toBe(true)
  })

  it('states the required number of pairs, and uses the normal distribution for many', () => {
    const noisy = [3, -2, 4, -1, 2, -3]
    const { mean, pairs_needed } = pairedDifference(noisy)
    expect(mean).toBe(0.5)
    expect(pairs_needed).toBeGreaterThan(50)
    const many = Array.from({ length: 40 }, (_, i) => (i % 2 === 0 ? 1 : 0))
    expect(pairedDifference(many).half_width).toBeCloseTo((1.96 * 0.5064) / Math.sqrt(40), 4)
  })
})

describe('the idleness of a workload', () => {
  const task = (work: Work, noswap: 0 | 1 = 0, gpuCount = 1): SimTask =>
    ({
      at: 0,
      request: { noswap, gpuCount, gpuMode: gpuCount > 1 ? 'exclusive' : 'shared' },
      work,
      allocSteps: [],
      cancelAt: null,
    }) as unknown as SimTask
  const phases = (...pairs: [number, number][]): Work => ({ kind: 'phases', phases: pairs })

  it('is the longest time without work', () => {
    expect(longestIdleMs({ kind: 'duration', ms: 1000 })).toBe(0)
    expect(longestIdleMs(phases([10, 5], [10, 700], [10, 0]))).toBe(700)
    expect(
      longestIdleMs({
        kind: 'bursts',
        stayMs: 1000,
        at: [
          [100, 50],
          [120, 100],
          [600, 10],
        ],
      }),
    ).toBe(390)
    expect(longestIdleMs({ kind: 'bursts', stayMs: 0, at: [[0, 50]] })).toBe(0)
  })

  it('counts swappable tasks that are idle for long, and the idle share of GPU time', async () => {
    const tasks = [
      task(phases([100, 300])),
      task(phases([100, 300]), 1),
      task({ kind: 'duration', ms: 400 }, 0, 2),
    ]
    let closed = 0
    const source = { ...makeSource(() => tasks.shift() ?? null), close: async () => void (closed += 1) }
    expect(await idlenessOf(source, 300)).toEqual({
      tasks: 3,
      isComplete: true,
      swappable: 1,
      idlePercent: 37.5,
      exclusivePercent: 50,
      idlePeriodMs: 300,
    })
    expect(closed).toBe(1)
    expect(
      await idlenessOf(
        makeSource(() => null),
        1,
      ),
    ).toMatchObject({ tasks: 0, idlePercent: 0 })
  })

  it('counts the tasks of the initial state, the only tasks of a snapshot', async () => {
    const present = (placed: object | null, work: Work): StartTask =>
      ({ ...task(work), state: { placed } }) as unknown as StartTask
    const nothing = makeSource(() => null)
    const busy = { kind: 'duration', ms: 400 } as const
    const tasks = [
      present(null, busy),
      present({ residency: 'resident', idleForMs: 200 }, busy),
      present({ residency: 'resident', idleForMs: 300 }, busy),
      present({ residency: 'swapped_out', idleForMs: null }, busy),
      present(null, phases([10, 400])),
    ]
    expect(await idlenessOf(nothing, 300, tasks)).toMatchObject({ tasks: 5, swappable: 3 })
  })
})
