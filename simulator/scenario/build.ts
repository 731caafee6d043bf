/** Converts a document that its schema accepts to a scenario, and checks rules that span its parts. */
import { DEFAULT_CONFIG, type ConfigFields } from '../../controller/model/config.ts'
import { NO_OWNER_LIMITS } from '../../controller/model/owner-limits.ts'
import type { Mib } from '../../protocol/units.ts'
import { assertionsOf } from './assertions.ts'
import { faultsOf } from './build-faults.ts'
import { nodesOf } from './build-fleet.ts'
import { operatorOf } from './build-operator.ts'
import { refuseImpossibleStarts } from './build-start.ts'
import { workloadItemsOf } from './build-workload.ts'
import type { Refuse } from '../document/refusal.ts'
import type { Scenario, ScenarioNode, Sweep } from './scenario.ts'
import type { ScenarioDocument } from './schema.ts'

/** Maximum number of runs of one sweep. */
const MAX_SWEEP_RUNS = 100_000

export function buildScenario(document: ScenarioDocument, baseDir: string, refuse: Refuse): Scenario {
  const { config } = document
  const { start, until, drain } = document.clock
  const nodes = nodesOf(document.fleet, refuse)
  const context = { baseDir, untilMs: until, startMs: start, largestFitMib: largestFitMib(nodes, config) }
  const workload = workloadItemsOf(document.workload, context, refuse)
  refuseImpossibleStarts(workload, nodes, refuse)
  return {
    name: document.scenario,
    description: document.description,
    version: document.version,
    seed: document.seed,
    clock: { startMs: start, untilMs: until, drain },
    nodes,
    config,
    ...(document.limits.placed_gpus_per_owner === null
      ? {}
      : { ownerLimits: { ...NO_OWNER_LIMITS, maxPlacedGpus: document.limits.placed_gpus_per_owner } }),
    workload,
    operator: operatorOf(document.operator, nodes, refuse),
    faults: faultsOf(document.faults, nodes, refuse),
    assertions: assertionsOf(document.assert),
    sweep: document.sweep === null ? null : sweepOf(document.sweep, refuse),
  }
}

/** Semantics 1: every task, 0 < d ≤ P − R. */
function largestFitMib(nodes: readonly ScenarioNode[], config: Partial<ConfigFields>): Mib {
  const reserveMib = config.safety_reserve_mib ?? DEFAULT_CONFIG.safety_reserve_mib
  let largest = 1
  for (const node of nodes)
    largest = Math.max(largest, node.gpu.vramMib - (node.safetyReserveMib ?? reserveMib))
  return largest
}

function sweepOf(document: NonNullable<ScenarioDocument['sweep']>, refuse: Refuse): Sweep {
  const { seeds, ...swept } = document
  const fields = Object.entries(swept).map(([key, values]) => ({
    field: key.slice('config.'.length) as keyof ConfigFields,
    values,
  }))
  for (const [key, values] of Object.entries({ ...swept, ...(seeds === null ? {} : { seeds }) }))
    if (new Set(values).size < values.length) refuse(['sweep', key], 'has a value twice')
  const runs = fields.reduce((product, { values }) => product * values.length, seeds?.length ?? 1)
  if (runs > MAX_SWEEP_RUNS) refuse(['sweep'], `makes ${runs} runs; allowed are ${MAX_SWEEP_RUNS}`)
  return { fields, seeds }
}
