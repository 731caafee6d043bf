/**
 * `sweep_openb_s`: the public openb trace, all its tasks a hundred times as dense on 64 GPUs, swept over 11
 * percentages and 5 seeds (docs/planning.md).
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Reading } from '../targets.ts'
import { timedHeadroom } from './commands.ts'
import type { SweepMeasure } from './sweep-targets.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const TASKS = 7_064
const SCENARIO = `scenario: openb-64
version: 1
clock: { until: 36h, drain: false }
fleet:
  - { count: 16, name: "n-{i}", gpus: 4, gpu: { model: A10, vram_mib: 24576, swap: stock-driver } }
workload:
  - { trace: openb.trace.jsonl.gz, time_scale: 0.01, activity: serving }
`

export function measureOpenbSweep(): Promise<readonly Reading<SweepMeasure>[]> {
  const data = resolve(ROOT, process.env['HEADROOM_SHARED'] ?? '../shared', 'data')
  const [pods, nodes] = [join(data, 'openb_pod_list_default.csv'), join(data, 'openb_node_list_gpu_node.csv')]
  if (!existsSync(pods))
    return Promise.resolve([{ name: 'sweep_openb_s', value: 'skipped', note: `missing file: ${pods}` }])
  const folder = mkdtempSync(join(tmpdir(), 'headroom-bench-'))
  try {
    const [file, trace, out] = [
      join(folder, 'openb.scenario.yaml'),
      join(folder, 'openb.trace.jsonl.gz'),
      join(folder, 'plan'),
    ]
    writeFileSync(file, SCENARIO)
    timedHeadroom([
      'trace',
      'import',
      'openb',
      pods,
      '--nodes',
      nodes,
      '--vram-map',
      'G2=24576,G3=81920',
      '-o',
      trace,
    ])
    const options = [
      '--overcommit',
      '0..200:20',
      '--seeds',
      '1..5',
      '--objective',
      'queue_wait.p50<=1h',
      '--out',
      out,
    ]
    const { wallS, stdout } = timedHeadroom(['sim', 'sweep', file, ...options])
    const rows = readFileSync(join(out, 'runs.csv'), 'utf8').trim().split('\n')
    const submitted = new Set(
      rows.slice(1).map((row) => row.split(',')[rows[0]?.split(',').indexOf('tasks_submitted') ?? -1]),
    )
    if (rows.length !== 56 || !submitted.has(String(TASKS)) || submitted.size !== 1)
      throw new Error(`not 55 runs of ${TASKS} tasks: ${[...submitted].join()}`)
    const sentence =
      stdout.split('\n').find((line) => /^(Overcommit|No overcommit)/.test(line)) ?? 'no recommendation'
    return Promise.resolve([
      { name: 'sweep_openb_s', value: wallS, note: `55 runs of ${TASKS} tasks; ${sentence}` },
    ])
  } finally {
    rmSync(folder, { recursive: true })
  }
}
