import type { ScenarioFacts, SimulationRecord } from '../../ports/simulation.ts'
import type { SimulationBody } from './schema.ts'
import { presentInstant, presentInstantOrNull } from '../http/instant.ts'

export function presentSimulation(record: SimulationRecord): SimulationBody {
  const { seed, untilMs, overcommitPercent } = record.choices
  return {
    id: record.id,
    kind: record.kind,
    state: record.state,
    scenario: record.scenario,
    scenario_sha256: record.scenarioSha256,
    exercise: record.exercise,
    seed,
    until_seconds: untilMs === null ? null : untilMs / 1000,
    overcommit_percent: overcommitPercent,
    progress: record.progress,
    reason: record.reason,
    created_by: record.createdBy,
    created_at: presentInstant(record.createdAt),
    started_at: presentInstantOrNull(record.startedAt),
    ended_at: presentInstantOrNull(record.endedAt),
  }
}

export function presentFacts({
  name,
  description,
  sha256,
  nodes,
  gpus,
  expectedTasks,
  untilMs,
  sweptFields,
}: ScenarioFacts) {
  return {
    name,
    description,
    sha256,
    nodes,
    gpus,
    expected_tasks: expectedTasks,
    until_seconds: untilMs === null ? null : untilMs / 1000,
    swept_fields: sweptFields,
  }
}
