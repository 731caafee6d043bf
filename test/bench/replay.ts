/**
 * `replay_100k` and `replay_1m`: tasks of 8 events each (arrival, start, five changes of activity, finish) on
 * a fleet with a load of three quarters. The CPU time per task is divided by that of the surroundings alone
 * (surroundings.ts), measured before and after each run in the same process.
 */
import { loadScenario } from '../../simulator/scenario/load.ts'
import { replayArrivals, VRAM_MIB } from './replay-workload.ts'
import { runCase, type SimulatedCase } from './simulated-case.ts'
import { runSurroundings } from './surroundings.ts'
import { collectGarbage, inShort, median, timed } from './stopwatch.ts'
import type { MeasureName, Reading } from './targets.ts'

const GPUS_PER_NODE = 8
/** The surroundings cost the same per task from here on. */
const SURROUNDINGS_TASKS = 100_000

export async function measureReplay(
  name: MeasureName,
  taskCount: number,
  gpus: number,
  runs: number,
): Promise<readonly Reading[]> {
  const whole = replayCase(taskCount, gpus)
  const around = replayCase(Math.min(taskCount, SURROUNDINGS_TASKS), gpus)
  surroundingsUsPerTask(around)
  const factors: number[] = []
  const notes: string[] = []
  for (let round = 0; round < runs; round++) {
    const before = surroundingsUsPerTask(around)
    const run = await runCase(whole)
    const bareUs = (before + surroundingsUsPerTask(around)) / 2
    const us = (run.cpuS * 1e6) / run.tasks
    factors.push(us / bareUs)
    const cut = run.tasks < taskCount ? `stopped at ${run.tasks} tasks: ` : ''
    notes.push(
      `${cut}${inShort(run.events)} events in ${run.cpuS.toFixed(1)} s, ` +
        `${inShort(run.events / run.cpuS)}/s, ${us.toFixed(0)} µs a task, surroundings ` +
        `${bareUs.toFixed(0)} µs, ${run.swaps} swaps, waits ${run.waitedS.toFixed(1)} s`,
    )
  }
  return [
    {
      name,
      value: median(factors),
      note: `${gpus} GPUs: ${notes.at(-1)}; ${runs} ${runs === 1 ? 'run' : 'runs'}`,
    },
  ]
}

/** CPU time per task without controller and servers. */
function surroundingsUsPerTask({ scenario, arrivals }: SimulatedCase): number {
  collectGarbage()
  const { cpuS, result } = timed(() => runSurroundings(scenario, arrivals))
  return (cpuS * 1e6) / result
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
