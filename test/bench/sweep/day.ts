/**
 * `day_64_gpus`: the speed relative to real time of a day of a loaded cluster of 64 GPUs, with swaps, metrics
 * and the digest. CPU time.
 */
import { loadScenario } from '../../../simulator/scenario/load.ts'
import { runScenario } from '../../../simulator/run/run.ts'
import { median, timedAsync } from '../stopwatch.ts'
import type { Reading } from '../targets.ts'
import type { SweepMeasure } from './sweep-targets.ts'

const ROUNDS = 5
const DAY_S = 86_400
const LEAST_SWAPS_PER_HOUR = 50
const SCENARIO = `scenario: bench-day
version: 1
clock: { until: 1d, drain: false }
fleet:
  - { count: 8, name: "n-{i}", gpus: 8, gpu: { vram_mib: 40960, swap: stock-driver } }
config: { default_vram_overcommit_percent: 60 }
workload:
  - { generate: poisson, rate_per_hour: 150, vram_mib: { lognormal: { median: 16000, sigma: 0.4 } },
      duration: { exponential: { mean: 1h } }, activity: serving }
`

export async function measureDay(): Promise<readonly Reading<SweepMeasure>[]> {
  const { scenario } = loadScenario({ text: SCENARIO, baseDir: '.' })
  const identity = { scenarioSha256: null, traceSha256: null, version: 'bench' }
  const ratios: number[] = []
  let note = ''
  // The first round is the slowest, because nothing is compiled yet. It counts too, because a user who runs
  // one day waits for it.
  for (let round = 0; round < ROUNDS; round++) {
    const startedAt = performance.now()
    const { cpuS, result } = await timedAsync(() => runScenario(scenario, identity, { seed: round + 1 }))
    const wallS = (performance.now() - startedAt) / 1000
    const { virtual_s, metrics } = result.result
    if (virtual_s !== DAY_S || metrics.swaps_per_hour < LEAST_SWAPS_PER_HOUR)
      throw new Error(`${virtual_s} s, ${metrics.swaps_per_hour} swaps an hour`)
    ratios.push(DAY_S / Math.max(cpuS, Number.EPSILON))
    note =
      `${metrics.tasks.submitted} tasks, ${metrics.swaps_per_hour.toFixed(0)} swaps an hour, ` +
      `utilization ${metrics.utilization_percent?.toFixed(0)} %; the last day took ${cpuS.toFixed(2)} ` +
      `s of CPU, ${wallS.toFixed(2)} s on the wall; the slowest of ${ROUNDS} was ` +
      `${Math.min(...ratios).toFixed(0)} ×`
  }
  return [{ name: 'day_64_gpus', value: median(ratios), note }]
}
