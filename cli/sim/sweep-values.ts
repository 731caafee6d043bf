/** Values of the options for sweeps. */
import { InvalidArgumentError } from 'commander'
import { OBJECTIVE_FORMAT, parseObjective } from '../../simulator/experiment/advisor/objective.ts'
import type { Objective } from '../../simulator/experiment/advisor/objective.ts'
import { overrideFieldProblem, overrideValue } from '../../simulator/document/override.ts'
import type { Override, OverrideValue } from '../../simulator/document/override.ts'
import { parseRange, rangeCount, rangeValues } from '../../simulator/document/quantity.ts'
import type { SweepAxis } from '../../simulator/experiment/sweep/sweep.ts'

/** Maximum values of one field. */
const MAX_VALUES = 1_000

/** Parses `fleet.0.count=2,4` or `=2..8:2`, once or several times. */
export function sweptAxes(text: string, before: readonly SweepAxis[] = []): readonly SweepAxis[] {
  const { field, written } = fieldIn(text)
  const values = written.split(',').flatMap(valuesIn)
  if (values.length > MAX_VALUES)
    throw new InvalidArgumentError(`It has ${values.length} values; the limit is ${MAX_VALUES}.`)
  if (new Set(values).size < values.length)
    throw new InvalidArgumentError('It contains the same value twice.')
  return [...before, { field, values }]
}

/** Parses `config.idle_swap_out_seconds=60`, once or several times. */
export function fieldValues(text: string, before: readonly Override[] = []): readonly Override[] {
  const { field, written } = fieldIn(text)
  if (before.some((each) => each.field === field)) throw new InvalidArgumentError(`${field} is set twice.`)
  return [...before, { field, value: overrideValue(written) }]
}

/** Parses `starvation.total<=20`, once or several times. */
export function objectives(text: string, before: readonly Objective[] = []): readonly Objective[] {
  const objective = parseObjective(text)
  if (objective === null) throw new InvalidArgumentError(`It must be ${OBJECTIVE_FORMAT}.`)
  return [...before, objective]
}

function fieldIn(text: string): { readonly field: string; readonly written: string } {
  const at = text.indexOf('=')
  const [field, written] = [text.slice(0, at), text.slice(at + 1)]
  if (at < 1 || written === '')
    throw new InvalidArgumentError('It must be FIELD=VALUE, for example fleet.0.count=4.')
  const problem = overrideFieldProblem(field)
  if (problem !== null) throw new InvalidArgumentError(`${problem}.`)
  return { field, written }
}

function valuesIn(text: string): readonly OverrideValue[] {
  const range = parseRange(text)
  if (range === null) return [overrideValue(text)]
  if (rangeCount(range) > MAX_VALUES)
    throw new InvalidArgumentError(`It has ${rangeCount(range)} values; the limit is ${MAX_VALUES}.`)
  return rangeValues(range)
}
