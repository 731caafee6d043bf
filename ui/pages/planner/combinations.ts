/**
 * A sweep by the combinations of the fields that it varies beside the percentage; without such fields it has
 * one. Pure.
 */
import type {
  AdviceBody,
  SettingsBody,
  SweepReportBody,
  SweepSummaryBody,
  SweptRunBody,
} from '../../../controller/api/schema/sweep-report.ts'

export interface Combination {
  /** `fleet.0.count=2, config.idle_swap_out_seconds=60`; empty where no other field is varied. */
  readonly name: string
  readonly settings: SettingsBody
  readonly advice: AdviceBody
  readonly summary: readonly SweepSummaryBody[]
  readonly runs: readonly SweptRunBody[]
}

/** As reports and requests write it. */
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
 * The combination to take; null: none keeps the objectives at any percentage.
 * 1. Some percentage keeps the objectives.
 * 2. Higher mean utilization there.
 * 3. Tried first.
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
 * Of combinations of which none has a percentage to recommend, as the report of `headroom sim sweep` says it.
 */
export function noneSentence(advice: readonly AdviceBody[]): string {
  const blocked = advice.filter(({ caveats }) => caveats.some(({ kind }) => kind === 'fit_nowhere')).length
  if (blocked > 0)
    return `No recommendation: in ${blocked} of the ${advice.length} combinations tasks fit on no node.`
  return `None of the ${advice.length} combinations keeps ${(advice[0]?.objectives ?? []).join(' and ')} at any percentage.`
}

function utilizationOf({ advice }: Combination): number {
  return advice.utilization_percent?.mean ?? -1
}
