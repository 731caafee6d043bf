/**
 * `sim_events_ratio` and `digest_ratio`: a serving cluster under overcommit, with a queue and swaps, as in
 * typical simulations.
 */
import { loadScenario } from '../../simulator/scenario/load.ts'
import { workloadOf } from '../../simulator/scenario/generate.ts'
import { runBareLoop } from './bare-loop.ts'
import { recordCase, runCase, type SimulatedCase } from './simulated-case.ts'
import { collectGarbage, inShort, median, stopsAfter, timed } from './stopwatch.ts'
import type { Reading } from './targets.ts'

const SCENARIO = `
scenario: bench-serving
version: 1
seed: 7
fleet:
  - { count: 16, name: "a100-{i}", gpus: 8, gpu: { model: A100-40, vram_mib: 40960, swap: stock-driver } }
config: { default_vram_overcommit_percent: 75 }
workload:
  - generate: poisson
    rate_per_hour: 120
    count: 6000
    gpus: { 1: 0.9, 2: 0.1 }
    vram_mib: { lognormal: { median: 16000, sigma: 0.4 } }
    duration: { exponential: { mean: 2h } }
    priority: { 0: 0.1, 2: 0.9 }
    noswap: 0.05
    activity: serving
`

const MIN_ROUNDS = 3
const MAX_ROUNDS = 9
/** No further round begins after this much CPU time. */
const BUDGET_S = 25

export async function measureSimEvents(): Promise<readonly Reading[]> {
  const { scenario } = loadScenario({ text: SCENARIO, baseDir: '.' })
  const one: SimulatedCase = { scenario, arrivals: (random) => workloadOf(scenario, random) }
  const { run: first, chains } = await recordCase(one)
  await runCase(one, true)
  runBareLoop(chains, first.tasks)
  const ratios: number[] = []
  const digestRatios: number[] = []
  const bareRates: number[] = []
  const isOverBudget = stopsAfter(BUDGET_S)
  while (ratios.length < MIN_ROUNDS || (ratios.length < MAX_ROUNDS && !isOverBudget())) {
    // The order alternates between rounds, so that the side effects of one do not always burden the other.
    const isOnFirst = ratios.length % 2 === 0
    const early = await runCase(one, !isOnFirst)
    collectGarbage()
    const bare = timed(() => runBareLoop(chains, 20 * first.tasks))
    const late = await runCase(one, isOnFirst)
    const [on, off] = isOnFirst ? [early, late] : [late, early]
    bareRates.push(bare.result / bare.cpuS)
    ratios.push(on.events / on.cpuS / (bare.result / bare.cpuS))
    digestRatios.push(off.cpuS / on.cpuS)
  }
  const perTask = first.events / first.tasks
  const shape =
    `${inShort(first.events)} events, ${perTask.toFixed(1)} a task, ` +
    `${(first.swaps / first.tasks).toFixed(1)} of them swaps, waits ${first.waitedS.toFixed(0)} s`
  const bareRate = median(bareRates)
  return [
    {
      name: 'sim_events_ratio',
      value: median(ratios),
      note:
        `${inShort(median(ratios) * bareRate)}/s, bare ${inShort(bareRate)}/s; ${shape}; ` +
        `${ratios.length} rounds`,
    },
    { name: 'digest_ratio', value: median(digestRatios), note: `the same runs` },
  ]
}
