/**
 * The folder of a sweep has equal bytes for any number of workers, and no completed run is lost or repeated,
 * whatever happens to the process or the files.
 */
import {
  appendFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { SweepRun } from '../../simulator/experiment/sweep/sweep.ts'
import { digestsIn, untilThere } from '../support/folder-contents.ts'
import { busyScenario, headroom, temporaryFolder, write } from '../support/headroom-command.ts'
import { startHeadroom } from '../support/running-command.ts'

const folder = temporaryFolder()
const busy = write(
  folder,
  'busy.scenario.yaml',
  busyScenario('sweep: { config.default_vram_overcommit_percent: [0, 50, 100], seeds: 1..3 }\n').replace(
    'until: 6h',
    'until: 2h',
  ),
)
const LOOK_EVERY_MS = 20
const TIMINGS = ['timing.json']
const sweep = (out: string, ...options: string[]): string[] => [
  'sim',
  'sweep',
  busy,
  '--out',
  join(folder, out),
  ...options,
]
const path = (...parts: string[]): string => join(folder, ...parts)

describe('the folder of a sweep', () => {
  beforeAll(async () => {
    const { code, stderr } = await headroom(sweep('one', '--jobs', '1'))
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('already')])
  })

  it('is equal to the last byte with one worker and with two, run by run and as a whole', async () => {
    const { code } = await headroom(sweep('two', '--jobs', '2'))
    expect(code).toBe(0)
    expect(digestsIn(path('two'), TIMINGS)).toEqual(digestsIn(path('one'), TIMINGS))
    expect(
      globSync('runs/*', { cwd: path('one') })
        .map((each) => each.slice(5))
        .sort((a, b) => (a < b ? -1 : 1)),
    ).toEqual(['0-s1', '0-s2', '0-s3', '100-s1', '100-s2', '100-s3', '50-s1', '50-s2', '50-s3'])
  })

  it('has for each run the bytes that `sim run` writes', async () => {
    const single = path('single')
    await headroom(['sim', 'run', busy, '--seed', '2', '--overcommit', '50', '--out', single])
    expect(digestsIn(path('one', 'runs', '50-s2'), [...TIMINGS, 'done.json'])).toEqual(
      digestsIn(single, TIMINGS),
    )
    expect(Object.keys(digestsIn(single, TIMINGS))).toEqual([
      'journal.jsonl',
      'result.json',
      'series.csv',
      'tasks.csv',
    ])
  })

  it('repeats only runs that are incomplete, changed, missing or of another scenario', async () => {
    const before = digestsIn(path('two'), TIMINGS)
    const doneAt = (run: string): number => statSync(path('two', 'runs', run, 'done.json')).mtimeMs
    const kept = ['0-s1', '0-s2', '100-s1', '100-s2', '50-s3'].map((run) => [run, doneAt(run)] as const)
    truncateSync(path('two', 'runs', '0-s3', 'journal.jsonl'), 1000)
    appendFileSync(path('two', 'runs', '50-s1', 'tasks.csv'), 'one more\n')
    rmSync(path('two', 'runs', '50-s2'), { recursive: true })
    writeFileSync(path('two', 'runs', '100-s3', 'done.json'), '{"format":1,"run":')
    mkdirSync(path('two', 'runs', '.partial-0-s1-1-1'))
    const { code, stderr } = await headroom(sweep('two'))
    expect([code, stderr]).toEqual([0, expect.stringContaining('5 of 9 runs already exist in')])
    expect(digestsIn(path('two'), TIMINGS)).toEqual(before)
    expect(kept.map(([run]) => [run, doneAt(run)])).toEqual(kept)

    const other = write(folder, 'other.scenario.yaml', `${readFileSync(busy, 'utf8')}# changed\n`)
    const one = ['--seeds', '1', '--overcommit', '50']
    const changed = await headroom(['sim', 'sweep', other, '--out', path('two'), ...one])
    expect(changed.code).toBe(0)
    expect(changed.stderr).not.toContain('already')
  })

  it('survives kill -9 at any time: the same command continues and has the same bytes', async () => {
    await killedAt('.partial-*/journal.jsonl', 1)
    await killedAt('[!.]*/done.json', 1)
    await killedAt('[!.]*/done.json', 4)
    const { code, stderr } = await headroom(sweep('killed'))
    expect([code, stderr]).toEqual([0, expect.stringMatching(/^[4-9] of 9 runs already exist in /)])
    expect(digestsIn(path('killed'), TIMINGS)).toEqual(digestsIn(path('one'), TIMINGS))
  })

  /** A sweep that ends before it is killed, as on a busy machine, begins again. */
  async function killedAt(pattern: string, count: number): Promise<void> {
    const isOver = () => existsSync(path('killed', 'result.json'))
    const isThere = () => globSync(`killed/runs/${pattern}`, { cwd: path() }).length >= count
    for (;;) {
      const killed = startHeadroom(sweep('killed'))
      await expect.poll(() => isThere() || isOver(), { interval: LOOK_EVERY_MS }).toBe(true)
      killed.process.kill('SIGKILL')
      await killed.ended
      if (!isOver()) return
      rmSync(path('killed'), { recursive: true })
    }
  }

  it('keeps completed runs on Ctrl-C and says how to continue', async () => {
    const stopped = startHeadroom(sweep('stopped', '--jobs', '1'))
    await untilThere(path(), 'stopped/runs/[!.]*/done.json', 2)
    stopped.process.kill('SIGINT')
    expect(await stopped.ended).toBe(130)
    expect(stopped.output()).toMatch(
      /stopped: [1-8] of 9 runs are done and kept in .*stopped; repeat the command to continue\n$/,
    )
    expect(globSync('{runs/.partial*,.lock,result.json}', { cwd: path('stopped') })).toEqual([])
    const { code } = await headroom(sweep('stopped'))
    expect(code).toBe(0)
    expect(digestsIn(path('stopped'), TIMINGS)).toEqual(digestsIn(path('one'), TIMINGS))
  })

  it('is suggested on Ctrl-C of a sweep without a folder', async () => {
    const stopped = startHeadroom(['sim', 'sweep', busy, '--seeds', '1..40', '--jobs', '2'])
    await stopped.says(/120 runs: \d0%, \d+ s left/)
    stopped.process.kill('SIGINT')
    expect(await stopped.ended).toBe(130)
    expect(stopped.output()).toMatch(
      /stopped: \d+ of 120 runs are done; with --out FOLDER a sweep can be continued\n/,
    )
  })

  it('is written by one sweep at a time', async () => {
    const first = startHeadroom(sweep('locked', '--seeds', '1..50', '--jobs', '1'))
    await untilThere(path(), 'locked/runs/.partial-*', 1)
    const second = await headroom(sweep('locked'))
    expect([second.code, second.stderr]).toEqual([
      2,
      expect.stringMatching(/locked: process \d+ is writing a sweep there/),
    ])
    first.process.kill('SIGKILL')
    await first.ended
  })

  it('has no journals if they are switched off', async () => {
    await headroom(sweep('bare', '--no-journal', '--seeds', '1', '--overcommit', '50'))
    expect(Object.keys(digestsIn(path('bare', 'runs', '50-s1')))).toEqual([
      'done.json',
      'result.json',
      'series.csv',
      'tasks.csv',
      'timing.json',
    ])
    const { stderr } = await headroom(sweep('bare', '--seeds', '1', '--overcommit', '50'))
    expect(stderr).not.toContain('already')
  })

  it('has runs of other fields, equal to those of `sim run --set`', async () => {
    const set = ['--set', 'config.idle_swap_out_seconds=60,600', '--set', 'fleet.0.count=1..2']
    const { code, stdout } = await headroom(sweep('set', ...set, '--overcommit', '50', '--seeds', '7'))
    expect(code).toBe(0)
    expect(stdout).toContain('\nconfig.idle_swap_out_seconds=60, fleet.0.count=2\n')
    const { runs } = JSON.parse(readFileSync(path('set', 'result.json'), 'utf8')) as {
      readonly runs: readonly SweepRun[]
    }
    expect(runs.map(({ settings }) => Object.values(settings))).toEqual([
      [60, 1],
      [60, 2],
      [600, 1],
      [600, 2],
    ])
    expect(new Set(runs.map(({ digest }) => digest)).size).toBe(4)
    const one = ['--set', 'config.idle_swap_out_seconds=600', '--set', 'fleet.0.count=1']
    const single = path('set-single')
    await headroom(['sim', 'run', busy, '--seed', '7', '--overcommit', '50', ...one, '--out', single])
    const { digest } = JSON.parse(readFileSync(join(single, 'result.json'), 'utf8')) as SweepRun
    expect(digest).toBe(runs[2]?.digest)
  })

  it.each([
    [['--set', 'fleet.0.cuont=2'], 'fleet[0].cuont'],
    [['--set', 'fleet.0.count=2', '--set', 'fleet.0.count=3'], '--set fleet.0.count: specified twice'],
    [['--set', 'config.default_vram_overcommit_percent=3'], 'use --overcommit A..B:STEP for this field'],
    [['--set', 'count'], 'It must be FIELD=VALUE'],
    [['--set', 'seed=3'], 'seed is not a field that may be set'],
    [['--set', 'fleet.0.count=2,2'], 'the same value twice'],
    [['--set', 'fleet.0.count=1..9999'], 'the limit is 1000'],
    [['--objective', 'happiness<=3'], 'It must be FIGURE<=MAX'],
    [['--seeds', '1..9999', '--overcommit', '0..1000:10'], 'result in 1009899 runs; the limit is 100000'],
  ])('is refused with a reason for %j', async (options, words) => {
    const { code, stderr } = await headroom(['sim', 'sweep', busy, ...options])
    expect([code, stderr]).toEqual([2, expect.stringContaining(words)])
  })
})

describe('the recommendation of a sweep', () => {
  it('can be recomputed from the table of runs', async () => {
    const objective = 'starvation.total<=56'
    await headroom(sweep('one', '--objective', objective))
    const [head = '', ...lines] = readFileSync(path('one', 'runs.csv'), 'utf8').trim().split('\n')
    const rows = lines.map((line) =>
      Object.fromEntries(line.split(',').map((cell, i) => [head.split(',')[i], Number(cell)])),
    )
    const percentages = [...new Set(rows.map((row) => row['overcommit_percent'] as number))]
    const valuesAt = (percent: number, column: string): number[] =>
      rows.filter((row) => row['overcommit_percent'] === percent).map((row) => row[column] as number)
    const mean = (values: readonly number[]): number =>
      values.reduce((sum, each) => sum + each, 0) / values.length
    const p95 = (values: readonly number[]): number =>
      values.toSorted((a, b) => a - b)[Math.ceil(0.95 * values.length) - 1] as number
    const keeping = percentages.filter((percent) => p95(valuesAt(percent, 'starvation_percent')) <= 56)
    const best = keeping.toSorted(
      (a, b) => mean(valuesAt(b, 'utilization_percent')) - mean(valuesAt(a, 'utilization_percent')) || a - b,
    )[0]
    const { advice } = JSON.parse(readFileSync(path('one', 'result.json'), 'utf8')) as {
      readonly advice: readonly {
        readonly recommended_percent: number
        readonly utilization_percent: { readonly mean: number }
      }[]
    }
    expect(keeping.length).toBeGreaterThan(0)
    expect(keeping.length).toBeLessThan(percentages.length)
    expect(advice[0]?.recommended_percent).toBe(best)
    expect(advice[0]?.utilization_percent.mean).toBeCloseTo(
      mean(valuesAt(best as number, 'utilization_percent')),
      10,
    )
  })
})
