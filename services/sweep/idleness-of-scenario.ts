import { DEFAULT_CONFIG } from '../../controller/model/config.ts'
import { idlenessOf } from '../../simulator/experiment/advisor/idleness.ts'
import type { Idleness } from '../../simulator/experiment/advisor/idleness.ts'
import type { RunPlan } from '../../simulator/run/run.ts'
import { startTasksOf, workloadOf } from '../../simulator/scenario/generate.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'

/** Measures the tasks of a run with that seed: initial and generated ones. Throws TraceError. */
export function idlenessOfScenario(scenario: RunPlan, seed: number): Promise<Idleness> {
  const idleSeconds = scenario.config.idle_swap_out_seconds ?? DEFAULT_CONFIG.idle_swap_out_seconds
  const random = createSeededRandom(seed)
  return idlenessOf(workloadOf(scenario, random), idleSeconds * 1000, startTasksOf(scenario, random))
}
