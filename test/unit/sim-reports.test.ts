import { describe, expect, it } from 'vitest'
import { compareRuns, formatComparison } from '../../simulator/report/compare-runs.ts'
import { differencesOf } from '../../simulator/report/compare.ts'
import { csvOf, seconds } from '../../simulator/results/csv.ts'
import {
  factsOf,
  shownNumber,
  shownPercent,
  shownSeconds,
  tableOf,
} from '../../simulator/report/plain-text.ts'
import type { RunResult } from '../../simulator/results/result.ts'
import type { Metrics } from '../../simulator/scenario/metrics.ts'
import { formatResult } from '../../simulator/report/summary.ts'
import { formatSweep, sweepCsv } from '../../simulator/report/sweep-table.ts'
import { finishedTaskLine, openTaskLine } from '../../simulator/report/task-rows.ts'
import { runsCsv } from '../../simulator/report/runs-csv.ts'
import {
  bySettings,
  settingsText,
  summarize,
  sweepJobs,
  sweepRunOf,
  sweepSize,
} from '../../simulator/experiment/sweep/sweep.ts'

const EMPTY: Metrics = {
  jct_s: null,
  queue_wait_s: null,
  slowdown: null,
  makespan_s: null,
  utilization_percent: null,
  starvation_percent: { total: 0, queue: 0, swap: 0, compute: 0 },
  swaps_per_hour: 0,
  swapped_gib_per_hour: 0,
  swap_jain: null,
  tasks: { submitted: 0, completed: 0, failed: 0, unfinished: 0 },
}

function result(metrics: Partial<Metrics> = {}): RunResult {
  return {
    digest: 'd',
    scenario_sha256: null,
    trace_sha256: null,
    seed: 1,
    version: '0',
    virtual_s: 60,
    metrics: { ...EMPTY, ...metrics },
  }
}

describe('a number in a report', () => {
  it.each([
    [0, '0.0 s'],
    [119.96, '120.0 s'],
    [120, '2.0 min'],
    [7199, '120.0 min'],
    [7200, '2.0 h'],
    [172_799, '48.0 h'],
    [172_800, '2.0 d'],
  ])('of %d s is shown as %s', (value, shown) => {
    expect(shownSeconds(value)).toBe(shown)
  })

  it('that is unknown is a dash, never 0', () => {
    expect([shownPercent(null), shownNumber(null, 3), shownPercent(12.34), shownNumber(0.98765, 3)]).toEqual([
      '–',
      '–',
      '12.3%',
      '0.988',
    ])
  })

  it('is aligned in tables', () => {
    expect(
      tableOf([
        ['a', 'bb'],
        ['ccc', 'd'],
      ]),
    ).toBe('a    bb\nccc   d\n')
    expect(factsOf([['a', '1'] as const, ['bbb', '2'] as const])).toBe('a    1\nbbb  2\n')
  })

  it('is missing in the summary of an empty run, which is still complete', () => {
    const text = formatResult('nothing', result())
    expect(text).toContain('queue wait   –\n')
    expect(text).toContain('makespan     –\n')
    expect(text).toContain("Jain's index –\n")
  })
})

describe('CSV', () => {
  it('quotes only values that need quotes', () => {
    expect(
      csvOf(
        ['a', 'b'],
        [
          ['plain', 1],
          ['with, comma', 'with "quotes"'],
          ['two\nlines', ''],
        ],
      ),
    ).toBe('a,b\nplain,1\n"with, comma","with ""quotes"""\n"two\nlines",\n')
  })

  it('writes ms as seconds without rounding', () => {
    expect([0, 5, 1500, 3_153_600_000_001].map(seconds)).toEqual([
      '0.000',
      '0.005',
      '1.500',
      '3153600000.001',
    ])
  })

  it('leaves slowdown empty for a failed task and wait empty for an unstarted one', () => {
    const task = {
      id: 'a',
      submittedAt: 1000,
      startedAt: 2000,
      finishedAt: 5000,
      state: 'failed',
      aloneMs: 1000,
    }
    expect(finishedTaskLine(task, 1000)).toBe('a,failed,0.000,1.000,4.000,1.000,4.000,\n')
    expect(finishedTaskLine({ ...task, state: 'completed' }, 1000)).toBe(
      'a,completed,0.000,1.000,4.000,1.000,4.000,4.000000\n',
    )
    expect(finishedTaskLine({ ...task, state: 'cancelled', startedAt: null }, 0)).toBe(
      'a,cancelled,1.000,,5.000,,4.000,\n',
    )
    expect(openTaskLine({ ...task, startedAt: null }, 0)).toBe('a,pending,1.000,,,,,\n')
    expect(openTaskLine(task, 0)).toBe('a,running,1.000,2.000,,1.000,,\n')
  })
})

describe('two results', () => {
  it('differ in the figures with different values, including those in only one result', () => {
    const before = result({ utilization_percent: 50, swap_jain: 1 })
    const after = result({ utilization_percent: 51, queue_wait_s: { mean: 1, p50: 1, p95: 1, p99: 1 } })
    expect(differencesOf(before, after)).toEqual([
      'utilization_percent: 50 → 51',
      'swap_jain: 1 → –',
      'queue_wait_s.mean: – → 1',
      'queue_wait_s.p50: – → 1',
      'queue_wait_s.p95: – → 1',
      'queue_wait_s.p99: – → 1',
    ])
    expect(differencesOf(before, before)).toEqual([])
  })
})

describe('a sweep', () => {
  const jobs = sweepJobs([0, 50], [1, 2, 3])
  const runs = jobs.map((job, i) =>
    sweepRunOf(
      job,
      result({
        utilization_percent: i,
        swap_jain: i === 4 ? 0.5 : null,
        queue_wait_s: { mean: i, p50: i, p95: 10 * i, p99: i },
      }),
    ),
  )

  it('runs every seed at every percentage', () => {
    expect(jobs.map(({ overcommitPercent, seed }) => `${overcommitPercent}/${seed}`)).toEqual([
      '0/1',
      '0/2',
      '0/3',
      '50/1',
      '50/2',
      '50/3',
    ])
  })

  it('has mean and band over the seeds of the runs that have the figure', () => {
    const [none, half] = summarize(runs)
    expect(none).toMatchObject({
      overcommit_percent: 0,
      seeds: 3,
      settings: {},
      utilization_percent: { mean: 1, p10: 0, p90: 2, p95: 2 },
      swap_jain: null,
    })
    expect(half).toMatchObject({
      queue_wait_s: { p95: { mean: 40, p10: 30, p90: 50, p95: 50 } },
      swap_jain: { mean: 0.5, p10: 0.5, p90: 0.5, p95: 0.5 },
    })
  })

  it('tries every combination of the other fields, and summarizes each separately', () => {
    const axes = [
      { field: 'config.idle_swap_out_seconds', values: [60, 300] },
      { field: 'fleet.0.count', values: [2, 4] },
    ]
    const swept = sweepJobs([0, 50], [7], axes)
    expect(sweepSize([0, 50], [7], axes)).toBe(swept.length)
    expect(swept.map((job) => `${settingsText(job.settings)}: ${job.overcommitPercent}`)).toEqual([
      'config.idle_swap_out_seconds=60, fleet.0.count=2: 0',
      'config.idle_swap_out_seconds=60, fleet.0.count=2: 50',
      'config.idle_swap_out_seconds=60, fleet.0.count=4: 0',
      'config.idle_swap_out_seconds=60, fleet.0.count=4: 50',
      'config.idle_swap_out_seconds=300, fleet.0.count=2: 0',
      'config.idle_swap_out_seconds=300, fleet.0.count=2: 50',
      'config.idle_swap_out_seconds=300, fleet.0.count=4: 0',
      'config.idle_swap_out_seconds=300, fleet.0.count=4: 50',
    ])
    const done = swept.map((job, i) => sweepRunOf(job, result({ utilization_percent: i })))
    expect(bySettings(done).map(({ runs: group }) => group.length)).toEqual([2, 2, 2, 2])
    const text = formatSweep(summarize(done)).split('\n')
    expect(text[0]).toMatch(/^overcommit +config\.idle_swap_out_seconds +fleet\.0\.count +utilization/)
    expect(text[4]).toMatch(/^50% +60 +4 +3\.0%/)
    expect(sweepCsv(summarize(done)).split('\n')[8]).toMatch(/^50,300,4,1,7\.000000,/)
    expect(runsCsv(done).split('\n')[8]).toMatch(/^50,300,4,1,7,0,0,0,0,,,,,,,0,0,,0,0,0,0,60,d$/)
  })

  it('contains no spreadsheet formulas', () => {
    const settings = { 'fleet.0.gpu.model': '=cmd|x', 'fleet.0.count': -1 }
    const done = [sweepRunOf({ overcommitPercent: 0, settings }, result())]
    expect(runsCsv(done).split('\n')[1]).toMatch(/^0,'=cmd\|x,-1,1,/)
    expect(sweepCsv(summarize(done)).split('\n')[1]).toMatch(/^0,'=cmd\|x,-1,1,/)
  })

  it('shows tasks that fit on no node in the last column', () => {
    const tasks = { submitted: 3, completed: 0, failed: 0, unfinished: 3 }
    const done = [{ ...tasks, fit_nowhere: 2 }, tasks].map((each, i) =>
      sweepRunOf({ overcommitPercent: i, settings: {} }, result({ tasks: each })),
    )
    expect(
      runsCsv(done)
        .trimEnd()
        .split('\n')
        .map((line) => line.split(',').at(-1)),
    ).toEqual(['tasks_fit_nowhere', '2', ''])
    expect(formatResult('x', done[0]!)).toContain(
      '3 unfinished, 2 of them do not fit on any node that is up and are not included in any figure below\n',
    )
  })

  it('is a table or a CSV', () => {
    const summary = summarize(runs)
    expect(formatSweep(summary).split('\n')[1]).toMatch(/^0% +1\.0% .*–$/)
    const [head, first] = sweepCsv(summary).split('\n')
    expect(head?.split(',')).toHaveLength(2 + 4 * 10)
    expect(first).toMatch(/^0,3,1\.000000,0\.000000,2\.000000,2\.000000,.*,,,,$/)
  })

  describe('a sweep of servers that cannot signal', () => {
    const sweep = (unheard: readonly (number | undefined)[]) =>
      unheard.map((value, i) =>
        sweepRunOf(
          { overcommitPercent: 10 * i, settings: {} },
          result(value === undefined ? {} : { unsignalled_wait_percent: value }),
        ),
      )

    it('counts tasks with unsignalled waits next to starvation and in the last columns', () => {
      const done = sweep([0, 12.34, undefined])
      const summary = summarize(done)
      const table = formatSweep(summary)
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/ {2,}/))
      expect(table.map((row) => row.slice(5, 7))).toEqual([
        ['compute', 'unsignalled wait'],
        ['0.0%', '0.0%'],
        ['0.0%', '12.3%'],
        ['0.0%', '–'],
      ])
      const figures = sweepCsv(summary).trimEnd().split('\n')
      expect(figures[0]).toMatch(
        new RegExp(
          /,swap_jain_p95,unsignalled_wait_percent,unsignalled_wait_percent_p10,/.source +
            /unsignalled_wait_percent_p90,unsignalled_wait_percent_p95,unheard_percent,/.source +
            /unheard_percent_p10,unheard_percent_p90,unheard_percent_p95$/.source,
        ),
      )
      expect(figures[2]).toMatch(/,(,12\.340000){8}$/)
      expect(figures[3]).toMatch(/,,,,,,,,$/)
      const cells = runsCsv(done).trimEnd().split('\n')
      expect(cells.map((line) => line.split(',').slice(-3))).toEqual([
        ['digest', 'unsignalled_wait_percent', 'unheard_percent'],
        ['d', '0', '0'],
        ['d', '12.34', '12.34'],
        ['d', '', ''],
      ])
      expect(summary.map((each) => each.unsignalled_wait_percent?.mean)).toEqual([0, 12.34, undefined])
      expect('unsignalled_wait_percent' in summary[2]!).toBe(false)
      expect(summary[1]?.unheard_percent).toEqual(summary[1]?.unsignalled_wait_percent)
    })

    it('reads the former name of the figure from earlier results', () => {
      const earlier = sweepRunOf({ overcommitPercent: 0, settings: {} }, result({ unheard_percent: 7 }))
      expect(summarize([earlier])[0]?.unsignalled_wait_percent?.mean).toBe(7)
      expect(runsCsv([earlier])).toMatch(/,7,7\n$/)
    })

    it('omits unsignalled waits if there were none, and in the files of signalling servers', () => {
      const [zero, none] = [summarize(sweep([0, 0])), summarize(sweep([undefined]))]
      expect(
        [formatSweep(zero), formatSweep(none), sweepCsv(none), runsCsv(sweep([undefined]))].filter((text) =>
          text.includes('unsignalled wait'),
        ),
      ).toEqual([])
      expect(sweepCsv(zero)).toContain(',unsignalled_wait_percent,')
      expect(runsCsv(sweep([0]))).toMatch(/,unsignalled_wait_percent,unheard_percent\n.*,0,0\n$/)
    })

    it('is compared like other sweeps', () => {
      const [a, b] = [sweep([10]), sweep([12])]
      expect(formatComparison(compareRuns(a, b))).toContain(
        'unsignalled_wait_percent  10.000  12.000  +2.000',
      )
    })
  })
})
