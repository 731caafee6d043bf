/** `sweep_speedup`: the same sweep into a folder, with one thread and with two. Wall time, so it wants a quiet machine with two cores. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { median } from '../stopwatch.ts'
import type { Reading } from '../targets.ts'
import { timedHeadroom } from './commands.ts'
import type { SweepMeasure } from './sweep-targets.ts'

const ROUNDS = 3
/** As many as the plan of docs/planning.md has: each thread compiles anew, about two seconds of processor time, which a sweep of a few runs does not earn back. */
const RUNS = 55
const SCENARIO = `scenario: bench-speedup
version: 1
seed: 1
clock: { until: 2d, drain: false }
fleet:
  - { count: 8, name: "n-{i}", gpus: 8, gpu: { vram_mib: 40960, swap: stock-driver } }
workload:
  - { generate: poisson, rate_per_hour: 120, vram_mib: { lognormal: { median: 16000, sigma: 0.4 } }, duration: { exponential: { mean: 1h } }, activity: serving }
`

export function measureSpeedup(): Promise<readonly Reading<SweepMeasure>[]> {
  if (availableParallelism() < 2) return Promise.resolve([{ name: 'sweep_speedup', value: 'skipped', note: 'this machine has one core' }])
  const folder = mkdtempSync(join(tmpdir(), 'headroom-bench-'))
  try {
    const file = join(folder, 'speedup.scenario.yaml')
    writeFileSync(file, SCENARIO)
    const wallOf = (jobs: number, round: number): number => {
      const out = join(folder, `${jobs}-${round}`)
      return timedHeadroom(['sim', 'sweep', file, '--overcommit', '0..100:10', '--seeds', '1..5', '--jobs', String(jobs), '--out', out])
        .wallS
    }
    const walls = Array.from({ length: ROUNDS }, (_, round) => [wallOf(1, round), wallOf(2, round)] as const)
    const ratios = walls.map(([one, two]) => one / two)
    const shown = walls.map(([one, two]) => `${one.toFixed(1)} s and ${two.toFixed(1)} s`).join(', ')
    return Promise.resolve([
      { name: 'sweep_speedup', value: median(ratios), note: `${RUNS} runs of two days on 64 GPUs, files and all: ${shown}` },
    ])
  } finally {
    rmSync(folder, { recursive: true })
  }
}
