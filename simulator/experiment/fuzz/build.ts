/** Converts a drawn document to a scenario with the same table and builder as a file. */
import { buildScenario } from '../../scenario/build.ts'
import { check } from '../../document/check.ts'
import type { DocNode } from '../../document/doc-node.ts'
import { ProblemList } from '../../document/problem.ts'
import { refuseIn } from '../../document/refusal.ts'
import type { Scenario } from '../../scenario/scenario.ts'
import { scenarioRule } from '../../scenario/schema.ts'
import type { FuzzDocument, Value } from './document.ts'

/** Throws ScenarioError for a document that no file could contain. */
export function scenarioOf(document: FuzzDocument): Scenario {
  const problems = new ProblemList(() => ({ line: 1, column: 1 }))
  const root = nodeOf(document as unknown as Value)
  const checked = check(root, scenarioRule, problems)
  problems.throwIfAny(document.scenario)
  const scenario = buildScenario(checked, '.', refuseIn(root, problems))
  problems.throwIfAny(document.scenario)
  return scenario
}

/** It has no text, so its values have no position. */
function nodeOf(value: Value): DocNode {
  if (value === null || typeof value !== 'object')
    return { kind: 'scalar', value, offset: 0, size: 1, height: 0 }
  if (isList(value)) {
    const items = value.map(nodeOf)
    return {
      kind: 'list',
      items,
      offset: 0,
      size: 1 + sum(items.map(({ size }) => size)),
      height: 1 + most(items),
    }
  }
  const entries = Object.entries(value).map(
    ([key, each]) => [key, { keyOffset: 0, value: nodeOf(each) }] as const,
  )
  const nodes = entries.map(([, entry]) => entry.value)
  return {
    kind: 'map',
    entries: new Map(entries),
    offset: 0,
    size: 1 + sum(nodes.map(({ size }) => size)),
    height: 1 + most(nodes),
  }
}

function isList(value: object): value is readonly Value[] {
  return Array.isArray(value)
}

function sum(sizes: readonly number[]): number {
  return sizes.reduce((total, size) => total + size, 0)
}

function most(nodes: readonly DocNode[]): number {
  return nodes.reduce((highest, { height }) => Math.max(highest, height), 0)
}
