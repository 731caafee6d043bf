/**
 * A sweep grouped by the combinations of its other fields; a sweep without other fields has one combination.
 * Pure.
 */
import type {
  AdviceBody,
  SettingsBody,
  SweepReportBody,
  SweepSummaryBody,
  SweptRunBody,
} from '../../../controller/api/simulations/sweep-report-schema.ts'

export interface Combination {
  /** `fleet.0.count=2, config.idle_swap_out_seconds=60`; empty if no other field is varied. */
  readonly name: string
  readonly settings: SettingsBody
  readonly advice: AdviceBody
  readonly summary: readonly SweepSummaryBody[]
  readonly runs: readonly SweptRunBody[]
}

/** In the notation of reports and requests. */
export function settingsText(settings: SettingsBody): string {
  return Object.entries(settings)
    .map(([field, value]) => `${field}=${value}`)
    .join(', ')
}

export function combinationsOf({ advice, summary, runs }: SweepReportBody): readonly Combination[] {
  return advice.map((each) => {
    const name = settingsText(each.settings)
    const isOf = ({ settings }: { readonly settings: SettingsBody }): boolean =>
      settingsText(settings) === name
    return {
      name,
      settings: each.settings,
      advice: each,
      summary: summary.filter(isOf),
      runs: runs.filter(isOf),
    }
  })
}

/**
 * The best combination; null: none meets the objectives at any percentage.
 * 1. Some percentage meets the objectives.
 * 2. Higher mean utilization.
 * 3. First in the sweep.
 */
export function bestOf(combinations: readonly Combination[]): Combination | null {
  let best: Combination | null = null
  for (const each of combinations) {
    if (each.advice.recommended_percent === null) continue
    if (best === null || utilizationOf(each) > utilizationOf(best)) best = each
  }
  return best
}

/**
 * The sentence for combinations without a recommendation, the same as in the report of `headroom sim sweep`.
 */
export function noneSentence(advice: readonly AdviceBody[]): string {
  const blocked = advice.filter(({ caveats }) => caveats.some(({ kind }) => kind === 'fit_nowhere')).length
  if (blocked > 0)
    return (
      `No recommendation: in ${blocked} of the ${advice.length} combinations, some tasks do not fit on any ` +
      'node.'
    )
  return (
    `None of the ${advice.length} combinations meets ${(advice[0]?.objectives ?? []).join(' and ')} at ` +
    'any percentage.'
  )
}

function utilizationOf({ advice }: Combination): number {
  return advice.utilization_percent?.mean ?? -1
}
