/** The variables of specification 2.5 and 2.6, as the agent and admission read them. */
import type { Percent } from '../../protocol/units.ts'
import { faulty, type Parsed, quoted, valid } from './field-fault.ts'
import { PERCENT_VARIABLE, SWAP_VARIABLE, type VariableNames } from './names.ts'
import { percentOfText } from './percent.ts'

/** Values of one process or container, by name. */
export type Variables = Readonly<Record<string, string | undefined>>

/**
 * Whether a process that reached the server without the task API may be swapped out (specification 2.6): yes
 * unless the variable says 0. A value that means nothing counts as 0, because a swap cannot be undone for a
 * process that did not expect it; the caller shows the fault.
 */
export function swapSetting(variables: Variables): {
  readonly isSwappable: boolean
  readonly fault: string | null
} {
  const parsed = swapOfVariable(variables)
  if (parsed.ok) return { isSwappable: parsed.value ?? true, fault: null }
  return { isSwappable: false, fault: parsed.faults.map(({ path, message }) => `${path} ${message}`).join() }
}

/** Null when neither name is set. */
export function swapOfVariable(variables: Variables): Parsed<boolean | null> {
  const set = firstSet(SWAP_VARIABLE, variables)
  if (set === null) return valid(null)
  if (set.value === '1') return valid(true)
  if (set.value === '0') return valid(false)
  return faulty(set.name, `must be 1 or 0, not ${quoted(set.value)}`)
}

/** The percentage that an agent starts with; null when neither name is set. */
export function percentOfVariable(variables: Variables): Parsed<Percent | null> {
  const set = firstSet(PERCENT_VARIABLE, variables)
  return set === null ? valid(null) : percentOfText(set.name, set.value)
}

function firstSet(
  names: VariableNames,
  variables: Variables,
): { readonly name: string; readonly value: string } | null {
  for (const name of names) {
    const value = variables[name]
    if (value !== undefined) return { name, value }
  }
  return null
}
