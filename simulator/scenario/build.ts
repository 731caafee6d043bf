/** A document that its schema found right, to a scenario; here is checked what spans its parts. */
import { DEFAULT_CONFIG, type ConfigFields } from '../../controller/domain/config.ts'
import type { Mib } from '../../protocol/units.ts'
import { assertionsOf } from './assertions.ts'
import { faultsOf } from './build-faults.ts'
import { nodesOf } from './build-fleet.ts'
import { workloadItemsOf } from './build-workload.ts'
import { nearestName } from './nearest-name.ts'
import type { Refuse } from './refusal.ts'
import type { OperatorAction, OperatorMethod, Scenario, ScenarioNode, Sweep } from './scenario.ts'
import type { ScenarioDocument } from './schema.ts'

/** Runs of one sweep. */
const MAX_SWEEP_RUNS = 100_000

export function buildScenario(document: ScenarioDocument, baseDir: string, refuse: Refuse): Scenario {
  const { config } = document
  const { start, until, drain } = document.clock
  const nodes = nodesOf(document.fleet, refuse)
  const context = { baseDir, untilMs: until, largestFitMib: largestFitMib(nodes, config) }
  return {
    name: document.scenario,
    description: document.description,
    version: document.version,
    seed: document.seed,
    clock: { startMs: start, untilMs: until, drain },
    nodes,
    config,
    workload: workloadItemsOf(document.workload, context, refuse),
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
  for (const node of nodes) largest = Math.max(largest, node.gpu.vramMib - (node.safetyReserveMib ?? reserveMib))
  return largest
}

function operatorOf(actions: ScenarioDocument['operator'], nodes: readonly ScenarioNode[], refuse: Refuse): OperatorAction[] {
  const names = new Set(nodes.map((node) => node.name))
  const built = actions.map((action, index) => {
    const [method, path] = methodAndPath(action)
    for (const [, name] of path.matchAll(/\{node:([^}]*)\}/g)) {
      if (!names.has(name!)) refuse(['operator', index, method], unknownNodeDetail(name!, names))
    }
    return { atMs: action.at, method, path, body: 'body' in action ? action.body : null, expect: action.expect }
  })
  // A stable sort: at one instant the order of the file stays.
  return built.toSorted((a, b) => a.atMs - b.atMs)
}

function methodAndPath(action: ScenarioDocument['operator'][number]): readonly [OperatorMethod, string] {
  if ('get' in action) return ['get', action.get]
  if ('put' in action) return ['put', action.put]
  if ('post' in action) return ['post', action.post]
  if ('patch' in action) return ['patch', action.patch]
  return ['delete', action.delete]
}

function unknownNodeDetail(name: string, names: ReadonlySet<string>): string {
  const near = nearestName(name, [...names].slice(0, 1000))
  return `the fleet has no node ${name}${near === null ? '' : `; did you mean ${near}?`}`
}

function sweepOf(document: NonNullable<ScenarioDocument['sweep']>, refuse: Refuse): Sweep {
  const { seeds, ...swept } = document
  const fields = Object.entries(swept).map(([key, values]) => ({
    field: key.slice('config.'.length) as keyof ConfigFields,
    values,
  }))
  const runs = fields.reduce((product, { values }) => product * values.length, seeds?.length ?? 1)
  if (runs > MAX_SWEEP_RUNS) refuse(['sweep'], `makes ${runs} runs; allowed are ${MAX_SWEEP_RUNS}`)
  return { fields, seeds }
}
