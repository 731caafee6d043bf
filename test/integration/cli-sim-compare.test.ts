import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { busyScenario, headroom, temporaryFolder, write } from '../support/headroom-command.ts'

const folder = temporaryFolder()
const busy = write(folder, 'busy.scenario.yaml', busyScenario())
const [one, other, run] = [join(folder, 'one'), join(folder, 'other'), join(folder, 'run')]

describe('headroom sim compare', () => {
  beforeAll(async () => {
    const sweep = ['sim', 'sweep', busy, '--overcommit', '0..50:50', '--seeds', '1..2', '--no-journal']
    await Promise.all([
      headroom([...sweep, '--out', one]),
      headroom([...sweep, '--out', other, '--set', 'config.idle_swap_out_seconds=60']),
      headroom(['sim', 'run', busy, '--out', run]),
    ])
  })

  it('exits with 0 for equal results, also given as a file', async () => {
    const { code, stdout } = await headroom(['sim', 'compare', one, join(one, 'result.json')])
    expect([code, stdout]).toEqual([0, expect.stringContaining('4 pairs of runs: 4 the same, 0 different\n')])
  })

  it('exits with 6 and the differences, seed by seed', async () => {
    const { code, stdout } = await headroom(['sim', 'compare', one, other])
    expect(code).toBe(6)
    expect(stdout).toMatch(/^A {2}.*one: a sweep of 4 runs, scenario [0-9a-f]{12}, version /)
    expect(stdout).toContain('\n4 pairs of runs: 2 the same, 2 different\n\novercommit 50%\n')
    expect(stdout).toMatch(/\nswaps_per_hour .*higher in 2, lower in 0/)
    const json = await headroom(['sim', 'compare', one, other, '--json'])
    expect([json.code, JSON.parse(json.stdout)]).toEqual([6, expect.objectContaining({ pairs: 4, same: 2 })])
  })

  it('refuses results that cannot be compared', async () => {
    const text = write(folder, 'text.json', '{"runs":[]}')
    for (const [a, b, words] of [
      [one, run, 'one is a sweep, the other a single run'],
      [one, join(folder, 'none'), 'none: no such file or folder'],
      [text, one, 'text.json: not the result of a run or a sweep'],
      [busy, one, 'not the result of `sim run` or `sim sweep`'],
    ] as const) {
      const { code, stderr } = await headroom(['sim', 'compare', a, b])
      expect([code, stderr]).toEqual([2, expect.stringContaining(words)])
    }
    const runs = (JSON.parse(readFileSync(join(one, 'result.json'), 'utf8')) as { runs: { seed: number }[] })
      .runs
    const elsewhere = write(
      folder,
      'elsewhere.json',
      JSON.stringify({ runs: runs.map((each) => ({ ...each, seed: each.seed + 10 })) }),
    )
    expect((await headroom(['sim', 'compare', one, elsewhere])).stderr).toContain('have no runs in common')
  })
})
