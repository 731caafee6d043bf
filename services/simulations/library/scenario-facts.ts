/** Facts about a scenario before it runs, and whether it exceeds the limits. */
import type { DurationMs } from '../../../protocol/units.ts'
import type { ScenarioFacts } from '../../../controller/ports/simulation.ts'
import type { LoadedScenario } from '../../../simulator/scenario/load.ts'
import { ownAxes } from '../../../simulator/experiment/sweep/sweep-grid.ts'
import { expectedOf } from '../../runs/run-input.ts'
import { LIMITS } from './limits.ts'

/** @param withinMs later tasks are not counted: the end of arrivals, or the horizon of a limit; null: all */
export function factsOf(
  { scenario, sha256 }: LoadedScenario,
  withinMs: DurationMs | null = null,
): ScenarioFacts {
  let expectedTasks = 0
  for (const item of scenario.workload)
    if (item.kind !== 'trace') expectedTasks += expectedOf(item, withinMs ?? Infinity)
  return {
    name: scenario.name,
    description: scenario.description,
    sha256,
    nodes: scenario.nodes.length,
    gpus: scenario.nodes.reduce((sum, node) => sum + node.gpuCount, 0),
    expectedTasks: Math.ceil(expectedTasks),
    seed: scenario.seed,
    untilMs: scenario.clock.untilMs,
    sweptFields: ownAxes(scenario.sweep).map(({ field, values }) => ({ field, values: values.length })),
  }
}

/** A session is interactive and may end at any time: its limit looks no further than this. */
export function sessionHorizonMs(untilMs: DurationMs | null): DurationMs {
  return Math.min(untilMs ?? Infinity, LIMITS.sessionTasksWithinMs)
}

/** Null: it may be run. */
export function whyTooLarge({
  nodes,
  gpus,
  expectedTasks,
}: Pick<ScenarioFacts, 'nodes' | 'gpus' | 'expectedTasks'>): string | null {
  if (nodes > LIMITS.nodes) return `The fleet has ${nodes} nodes; the limit is ${LIMITS.nodes}.`
  if (gpus > LIMITS.gpus) return `The fleet has ${gpus} GPUs; the limit is ${LIMITS.gpus}.`
  if (expectedTasks > LIMITS.tasks)
    return `The scenario has about ${expectedTasks} tasks; the limit is ${LIMITS.tasks}.`
  return null
}
