/** Faults of the scenario language from a separate text, for an existing fleet. */
import { faultsOf } from '../scenario/build-faults.ts'
import { check } from '../document/check.ts'
import { parseDocument } from '../document/document.ts'
import type { FaultItem } from '../scenario/fault.ts'
import { refuseIn } from '../document/refusal.ts'
import type { ScenarioNode } from '../scenario/scenario.ts'
import { faultsRule } from '../scenario/schema-faults.ts'

/** @param text a list, as under `faults:`. Throws ScenarioError; `file` is its name in messages */
export function readFaults(text: string, nodes: readonly ScenarioNode[], file: string): readonly FaultItem[] {
  const { root, problems } = parseDocument(text)
  if (root === null) throw problems.toError(file)
  const entries = check(root, faultsRule, problems)
  problems.throwIfAny(file)
  // Positions are relative to the root, which is the list itself here.
  const refuse = refuseIn(root, problems)
  const faults = faultsOf(entries, nodes, (keys, detail) => refuse(keys.slice(1), detail))
  problems.throwIfAny(file)
  return faults
}
