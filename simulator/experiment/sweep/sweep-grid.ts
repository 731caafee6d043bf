/** The runs of a sweep: from the request, and from the sweep section of the scenario. Pure. */
import { DEFAULT_CONFIG } from '../../../controller/model/config.ts'
import type { Percent } from '../../../protocol/units.ts'
import type { Scenario } from '../../scenario/scenario.ts'
import { sweepSize, type SweepAxis } from './sweep.ts'

/** Omitted fields are those of the scenario. */
export interface SweepRequest {
  readonly overcommit?: readonly Percent[] | undefined
  readonly seeds?: readonly number[] | undefined
  /** Fields other than the percentage; they replace the same fields in the scenario's sweep. */
  readonly set?: readonly SweepAxis[] | undefined
}

/** Each percentage with each seed, for every combination of the values of the other fields. */
export interface SweepGrid {
  readonly percentages: readonly Percent[]
  readonly seeds: readonly number[]
  readonly axes: readonly SweepAxis[]
}

export type GridRefusal =
  | { readonly kind: 'percentage_as_field'; readonly field: string }
  | { readonly kind: 'field_twice'; readonly field: string }
  | { readonly kind: 'no_percentages' }
  | { readonly kind: 'too_many_runs'; readonly runs: number; readonly max: number }

/** The field of the configuration that every sweep varies. */
export const PERCENTAGE = 'default_vram_overcommit_percent'

export function sweepGrid(
  scenario: Scenario,
  wish: SweepRequest,
  maxRuns: number,
): { readonly ok: true; readonly grid: SweepGrid } | { readonly ok: false; readonly refusal: GridRefusal } {
  const refused = refusedField(wish.set ?? [])
  if (refused !== null) return { ok: false, refusal: refused }
  const axes = axesOf(scenario, wish.set ?? [])
  const percentages = percentagesOf(scenario, wish, axes.length > 0)
  if (percentages === null) return { ok: false, refusal: { kind: 'no_percentages' } }
  const seeds = wish.seeds ?? scenario.sweep?.seeds ?? [scenario.seed]
  const runs = sweepSize(percentages, seeds, axes)
  if (runs > maxRuns) return { ok: false, refusal: { kind: 'too_many_runs', runs, max: maxRuns } }
  return { ok: true, grid: { percentages, seeds, axes } }
}

function refusedField(set: readonly SweepAxis[]): GridRefusal | null {
  const named = new Set<string>()
  for (const { field } of set) {
    if (field === `config.${PERCENTAGE}`) return { kind: 'percentage_as_field', field }
    if (named.has(field)) return { kind: 'field_twice', field }
    named.add(field)
  }
  return null
}

/** Requested fields come last, so that they change first. */
function axesOf({ sweep }: Scenario, set: readonly SweepAxis[]): SweepAxis[] {
  const named = new Set(set.map(({ field }) => field))
  return [...ownAxes(sweep).filter(({ field }) => !named.has(field)), ...set]
}

/** Other fields that the scenario's own sweep varies. */
export function ownAxes(sweep: Scenario['sweep']): SweepAxis[] {
  return (sweep?.fields ?? [])
    .filter(({ field }) => field !== PERCENTAGE)
    .map(({ field, values }) => ({ field: `config.${field}`, values }))
}

/**
 * The requested percentages, or those of the scenario's sweep, or, if another field is varied, the percentage
 * of the scenario.
 */
function percentagesOf(
  { sweep, config }: Scenario,
  { overcommit }: SweepRequest,
  isOtherSwept: boolean,
): readonly Percent[] | null {
  if (overcommit !== undefined) return overcommit
  const values = sweep?.fields.find(({ field }) => field === PERCENTAGE)?.values ?? []
  if (values.length > 0) return values.filter((value) => typeof value === 'number')
  return isOtherSwept ? [config[PERCENTAGE] ?? DEFAULT_CONFIG[PERCENTAGE]] : null
}
