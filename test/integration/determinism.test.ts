/**
 * Equal scenario, seed and version give equal bytes: in any time zone, language, folder and process, and over
 * any transport.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { RunResult } from '../../simulator/results/result.ts'
import { busyScenario, headroom, headroomJson, temporaryFolder, write } from '../support/headroom-command.ts'

const folder = temporaryFolder()
mkdirSync(join(folder, 'elsewhere'))
/**
 * A trace with names that sort differently in other languages, a task that grows, a cancelled task, and an
 * operator.
 */
const EXTRA = `  - { trace: letters.trace.jsonl, time_scale: 0.5 }
  - { task: { id: grows, at: 1h, vram_mib: 4000, run: 2h, alloc: [[30m, 9000]] } }
  - { task: { id: gone, at: 2h, vram_mib: 4000, run: 5h, cancel_at: 3h } }
  - { task: { id: never, at: 2h, vram_mib: 90000 } }
operator:
  - { at: 4h, put: /api/v1/config, body: { default_vram_overcommit_percent: 90, idle_swap_out_seconds: 120 },
      expect: 200 }
`
const LETTERS = ['ı', 'I', 'ä', 'Z', 'Ö', 'ß']
write(
  folder,
  'letters.trace.jsonl',
  [
    '{"trace":"letters","version":1,"t_unit":"ms"}',
    ...LETTERS.map(
      (id, i) =>
        `{"id":"${id}","at":${i * 1000},"gpus":1,"vram_mib":6000,"work":{"kind":"phases",` +
        '"phases":[[60000,900000],[60000,0]]}}',
    ),
    '',
  ].join('\n'),
)
const scenario = write(folder, 'busy.scenario.yaml', busyScenario(EXTRA))

const FILES = ['result.json', 'tasks.csv', 'series.csv', 'journal.jsonl']

describe('a run', () => {
  it('is equal to the last byte in another time zone, language and folder', async () => {
    const [here, there] = [join(folder, 'here'), join(folder, 'there')]
    const elsewhere = join(folder, 'elsewhere')
    const ended = await Promise.all([
      headroom(['sim', 'run', scenario, '--out', here], { env: { TZ: 'UTC', LANG: 'C', LC_ALL: 'C' } }),
      headroom(['sim', 'run', relative(elsewhere, scenario), '--out', '../there'], {
        cwd: elsewhere,
        env: { TZ: 'Pacific/Chatham', LANG: 'tr_TR.UTF-8', LC_ALL: 'tr_TR.UTF-8' },
      }),
    ])
    expect(ended.map(({ code }) => code)).toEqual([0, 0])
    expect(ended[1]?.stdout).toBe(ended[0]?.stdout)
    for (const file of FILES)
      expect(readFileSync(join(there, file)).equals(readFileSync(join(here, file))), file).toBe(true)
    const { metrics } = JSON.parse(readFileSync(join(here, 'result.json'), 'utf8')) as RunResult
    expect(metrics.swaps_per_hour).toBeGreaterThan(1)
  })

  it('decides equally when messages pass through the codec, and when all heartbeats are sent', async () => {
    const [plain, wire, enacted, both] = await Promise.all(
      [[], ['--wire'], ['--enact-heartbeats'], ['--wire', '--enact-heartbeats']].map((options) =>
        headroomJson<RunResult & { timing?: unknown }>(['sim', 'run', scenario, ...options]),
      ),
    )
    for (const run of [plain, wire, enacted, both]) delete run?.timing
    expect(wire).toEqual(plain)
    expect(enacted).toEqual(plain)
    expect(both).toEqual(plain)
  })

  it('differs with the seed', async () => {
    const runs = await Promise.all(
      ['1', '2'].map((seed) =>
        headroomJson<RunResult>(['sim', 'run', scenario, '--seed', seed, '--until', '3h']),
      ),
    )
    expect(runs[0]?.digest).not.toBe(runs[1]?.digest)
  })
})
