/**
 * `sweep_speedup`: the same sweep to a folder, with one worker and with two. It uses wall time, so it needs
 * an idle machine with two cores. For comparison, the limit of the machine itself: two independent sweeps at
 * once, relative to one of them alone.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { median } from '../stopwatch.ts'
import type { Reading } from '../targets.ts'
import { timedHeadroom, timedTogether } from './commands.ts'
import type { SweepMeasure } from './sweep-targets.ts'

const ROUNDS = 3
/**
 * As many runs as the plan of docs/planning.md: each worker compiles the code again, about two seconds of CPU
 * time, which a sweep of a few runs does not recover.
 */
const RUNS = 55
const SCENARIO = `scenario: bench-speedup
version: 1
seed: 1
clock: { until: 2d, drain: false }
fleet:
  - { count: 8, name: "n-{i}", gpus: 8, gpu: { vram_mib: 40960, swap: stock-driver } }
workload:
  - { generate: poisson, rate_per_hour: 120, vram_mib: { lognormal: { median: 16000, sigma: 0.4 } },
      duration: { exponential: { mean: 1h } }, activity: serving }
`

export async function measureSpeedup(): Promise<readonly Reading<SweepMeasure>[]> {
  if (availableParallelism() < 2)
    return [{ name: 'sweep_speedup', value: 'skipped', note: 'this machine has one core' }]
  const folder = mkdtempSync(join(tmpdir(), 'headroom-bench-'))
  try {
    const rounds: Round[] = []
    for (let each = 0; each < ROUNDS; each++) rounds.push(await roundIn(join(folder, String(each))))
    const speedup = median(rounds.map(({ one, two }) => one / two))
    const limit = median(rounds.map(({ alone, together }) => (2 * alone) / together))
    const shown = rounds.map(({ one, two }) => `${one.toFixed(1)} s and ${two.toFixed(1)} s`).join(', ')
    const ofLimit =
      `two independent sweeps reach ${limit.toFixed(2)}, this is ${(speedup / limit).toFixed(2)} of ` + 'that'
    return [
      {
        name: 'sweep_speedup',
        value: speedup,
        note: `${RUNS} runs of two days on 64 GPUs, files and all: ${shown}; ${ofLimit}`,
      },
    ]
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Wall seconds. */
interface Round {
  /** The sweep with one worker, and with two. */
  readonly one: number
  readonly two: number
  /** About half of it with one worker, and twice that half at once. */
  readonly alone: number
  readonly together: number
}

async function roundIn(folder: string): Promise<Round> {
  mkdirSync(folder)
  const file = join(folder, 'speedup.scenario.yaml')
  writeFileSync(file, SCENARIO)
  const sweep = (seeds: string, jobs: number, out: string): readonly string[] => {
    return [
      'sim',
      'sweep',
      file,
      '--overcommit',
      '0..100:10',
      '--seeds',
      seeds,
      '--jobs',
      String(jobs),
      '--out',
      join(folder, out),
    ]
  }
  return {
    one: timedHeadroom(sweep('1..5', 1, 'one')).wallS,
    two: timedHeadroom(sweep('1..5', 2, 'two')).wallS,
    alone: await timedTogether([sweep('1..3', 1, 'alone')]),
    together: await timedTogether([sweep('1..3', 1, 'left'), sweep('1..3', 1, 'right')]),
  }
}
