/** Creates the record of a simulation at its start. */
import type {
  RunChoices,
  ScenarioFacts,
  SimulationKind,
  SimulationRecord,
} from '../../../controller/ports/simulation.ts'

export interface NewRecord {
  readonly id: string
  readonly kind: SimulationKind
  readonly facts: Pick<ScenarioFacts, 'name' | 'sha256'>
  readonly exercise?: string | null
  readonly choices: RunChoices
  readonly by: string | null
  readonly now: number
}

export function newRecord({
  id,
  kind,
  facts,
  choices,
  by,
  now,
  exercise = null,
}: NewRecord): SimulationRecord {
  return {
    id,
    kind,
    state: 'queued',
    revision: 1,
    scenario: facts.name,
    scenarioSha256: facts.sha256,
    exercise,
    choices,
    createdBy: by,
    createdAt: now,
    startedAt: null,
    endedAt: null,
    progress: 0,
    reason: null,
  }
}
