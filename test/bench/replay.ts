/**
 * `replay_100k` and `replay_1m`: tasks of 8 events each (arrival, start, five changes of activity, finish) on
 * a fleet with a load of three quarters.
 */
import { loadScenario } from '../../simulator/scenario/load.ts'
import { runBareLoop } from './bare-loop.ts'
import { replayArrivals, VRAM_MIB } from './replay-workload.ts'
import { recordCase, runCase, type SimulatedCase } from './simulated-case.ts'
import { runSurroundings } from './surroundings.ts'
import { collectGarbage, inShort, median, timed } from './stopwatch.ts'
import type { MeasureName, Reading } from './targets.ts'

const GPUS_PER_NODE = 8
const RECORDED_TASKS = 20_000
const EVENTS_PER_TASK = 8
const SURROUNDINGS_TASKS = 100_000
const SURROUNDINGS_ROUNDS = 3

export async function measureReplay(
  name: MeasureName,
  taskCount: number,
  gpus: number,
  runs: number,
): Promise<readonly Reading[]> {
  const whole = replayCase(taskCount, gpus)
  const { chains } = await recordCase({ ...whole, arrivals: replayArrivals(RECORDED_TASKS, gpus) })
  runBareLoop(chains, RECORDED_TASKS)
  const bareRate = (): number => {
    collectGarbage()
    const bare = timed(() => runBareLoop(chains, taskCount))
    return bare.result / bare.cpuS
  }
  const around = surroundingsOf(replayCase(Math.min(taskCount, SURROUNDINGS_TASKS), gpus), bareRate)
  const factors: number[] = []
  const notes: string[] = []
  for (let round = 0; round < runs; round++) {
    const before = bareRate()
    const run = await runCase(whole)
    const bare = (before + bareRate()) / 2
    factors.push(run.cpuS / (run.events / bare))
    const cut = run.tasks < taskCount ? `stopped at ${run.tasks} tasks: ` : ''
    notes.push(
      `${cut}${inShort(run.events)} events in ${run.cpuS.toFixed(1)} s, ` +
        `${inShort(run.events / run.cpuS)}/s, bare ${inShort(bare)}/s, ${run.swaps} swaps, waits ` +
        `${run.waitedS.toFixed(1)} s`,
    )
  }
  const ofIt = `drawing work, GPUs, messages and journal alone ${around.toFixed(1)} ×`
  return [
    {
      name,
      value: median(factors),
      note: `${gpus} GPUs: ${notes.at(-1)}; ${runs} ${runs === 1 ? 'run' : 'runs'}; ${ofIt}`,
    },
  ]
}

/** A run without controller and servers, compared with the bare loop. */
function surroundingsOf({ scenario, arrivals }: SimulatedCase, bareRate: () => number): number {
  const factors: number[] = []
  for (let round = 0; round < SURROUNDINGS_ROUNDS; round++) {
    const rate = bareRate()
    const { cpuS, result } = timed(() => runSurroundings(scenario, arrivals))
    factors.push(cpuS / ((result * EVENTS_PER_TASK) / rate))
  }
  return median(factors)
}

function replayCase(taskCount: number, gpus: number): SimulatedCase {
  const text = `
scenario: bench-replay
version: 1
seed: 11
fleet:
  - { count: ${gpus / GPUS_PER_NODE}, name: "n-{i}", gpus: ${GPUS_PER_NODE},
      gpu: { model: A100-40, vram_mib: ${VRAM_MIB}, swap: stock-driver } }
config: { default_vram_overcommit_percent: 50 }
`
  return {
    scenario: loadScenario({ text, baseDir: '.' }).scenario,
    arrivals: replayArrivals(taskCount, gpus),
  }
}
