import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { RunResult } from '../../simulator/results/result.ts'
import type { SweepRun, SweepSummary } from '../../simulator/experiment/sweep/sweep.ts'
import { busyScenario, headroom, headroomJson, temporaryFolder, write } from '../support/headroom-command.ts'

const folder = temporaryFolder()
const busy = write(folder, 'busy.scenario.yaml', busyScenario())
const RANGE = ['--overcommit', '0,50..100:50', '--seeds', '1..2']

interface Sweep {
  readonly runs: readonly (SweepRun & { timing?: unknown })[]
  readonly summary: readonly SweepSummary[]
}

describe('headroom sim sweep', () => {
  it('has the same result in two worker processes as in one', async () => {
    const [one, two] = await Promise.all(
      ['1', '2'].map((jobs) => headroomJson<Sweep>(['sim', 'sweep', busy, ...RANGE, '--jobs', jobs])),
    )
    for (const run of [...(one as Sweep).runs, ...(two as Sweep).runs]) delete run.timing
    expect(two).toEqual(one)
  })

  it('prints every run like `sim run`, and means with bands over the seeds', async () => {
    const { runs, summary } = await headroomJson<Sweep>(['sim', 'sweep', busy, ...RANGE])
    expect(runs.map((run) => [run.overcommit_percent, run.seed])).toEqual([
      [0, 1],
      [0, 2],
      [50, 1],
      [50, 2],
      [100, 1],
      [100, 2],
    ])
    const {
      overcommit_percent: _percent,
      settings: _settings,
      timing: _timing,
      ...third
    } = runs[3] as Sweep['runs'][number]
    const { timing: _, ...single } = await headroomJson<RunResult & { timing: unknown }>([
      'sim',
      'run',
      busy,
      '--seed',
      '2',
      '--overcommit',
      '50',
    ])
    expect(third).toEqual(single)
    expect(summary.map((each) => each.overcommit_percent)).toEqual([0, 50, 100])
    const queue = summary.map((each) => each.starvation_percent.queue)
    const [a, b] = [runs[0], runs[1]].map((run) => run?.metrics.starvation_percent.queue as number) as [
      number,
      number,
    ]
    expect(queue[0]).toEqual({
      mean: (a + b) / 2,
      p10: Math.min(a, b),
      p90: Math.max(a, b),
      p95: Math.max(a, b),
    })
    expect(queue[2]?.mean).toBeLessThan(queue[0]?.mean as number)
    expect(summary[2]?.starvation_percent.swap?.mean).toBeGreaterThan(
      summary[0]?.starvation_percent.swap?.mean as number,
    )
    expect(summary[0]).toMatchObject({
      seeds: 2,
      swap_jain: null,
      swaps_per_hour: { mean: 0, p10: 0, p90: 0 },
    })
  })

  it('prints one line per percentage with a recommendation, and writes the same to a folder', async () => {
    const out = join(folder, 'out')
    const { code, stdout } = await headroom([
      'sim',
      'sweep',
      busy,
      '--overcommit',
      '0..50:50',
      '--seeds',
      '3',
      '--out',
      out,
    ])
    expect(code).toBe(0)
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(
        new RegExp(
          /^overcommit +utilization +starvation +queue +swap +compute +wait p50 +wait /.source +
            /p95 +swaps\/h +GiB\/h +Jain +wake p50 +wake p95$/.source,
        ),
      ),
      expect.stringMatching(/^0% +\d+\.\d% .* –$/),
      expect.stringMatching(/^50% +\d+\.\d% .* \d\.\d{3}( +[\d.]+ (s|min|h)){2}$/),
      '',
      expect.stringMatching(/^overcommit +utilization +p10 +p90 +p95 of starvation\.total<=20$/),
      expect.stringMatching(/^0% .* (kept|broken)/),
      expect.stringMatching(/^50% .* (kept|broken)/),
      '',
      'None of the overcommit percentages tried meets starvation.total<=20 in 95% of the seeds.',
      expect.stringContaining('no knee'),
      expect.stringMatching(/^The closest percentage is (0|50)%/),
      '',
    ])
    const { runs, summary } = JSON.parse(readFileSync(join(out, 'result.json'), 'utf8')) as Sweep
    expect([runs.length, summary.length]).toEqual([2, 2])
    expect(runs[0]).not.toHaveProperty('timing')
    expect(readFileSync(join(out, 'summary.csv'), 'utf8').split('\n')).toHaveLength(4)
  })

  it('uses the sweep and the seeds of the scenario by default', async () => {
    const file = write(
      folder,
      'swept.scenario.yaml',
      busyScenario('sweep: { config.default_vram_overcommit_percent: [0, 30], seeds: 5..6 }\n'),
    )
    const { runs } = await headroomJson<Sweep>(['sim', 'sweep', file])
    expect(runs.map((run) => [run.overcommit_percent, run.seed])).toEqual([
      [0, 5],
      [0, 6],
      [30, 5],
      [30, 6],
    ])
  })

  it('fails when the answer to an operator is not as expected in a run', async () => {
    const file = write(
      folder,
      'operator.scenario.yaml',
      busyScenario('operator: [{ at: 1h, get: /api/v1/nodes/none, expect: 200 }]\n'),
    )
    const { code, stderr } = await headroom(['sim', 'sweep', file, '--overcommit', '0..10:10', '--jobs', '2'])
    expect(code).toBe(1)
    expect(stderr).toContain('10%, seed 42: operator at 1h: GET /api/v1/nodes/none was answered 404')
  })
})
