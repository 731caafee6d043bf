/** A sweep by combinations of the other varied fields, and the best of them. */
import type { Advice, Candidate } from '../../experiment/advisor/advisor.ts'
import { type Settings, settingsText, type SweepSummary } from '../../experiment/sweep/sweep.ts'

export interface Combination {
  /** `fleet.0.count=2, config.idle_swap_out_seconds=60`; empty without other fields. */
  readonly title: string
  /** Anchor in the page. */
  readonly place: string
  readonly advice: Advice
  /** By increasing percentage. */
  readonly summary: readonly SweepSummary[]
}

/** In the order of the advice. */
export function combinationsOf(
  summary: readonly SweepSummary[],
  advice: ReadonlyArray<Advice & { readonly settings: Settings }>,
): readonly Combination[] {
  const byTitle = Map.groupBy(summary, ({ settings }) => settingsText(settings))
  return advice.map((each, i) => {
    const title = settingsText(each.settings)
    const own = (byTitle.get(title) ?? []).toSorted((a, b) => a.overcommit_percent - b.overcommit_percent)
    return { title, place: `c${i + 1}`, advice: each, summary: own }
  })
}

/**
 * The best combination; null: none meets the objectives at any percentage.
 * 1. Some percentage meets the objectives.
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

function utilizationOf({ advice }: Combination): number {
  return advice.utilization_percent?.mean ?? -1
}

/** The recommended percentage or, if none meets the objectives, the nearest one. */
export function takenOf({ recommended_percent, caveats, candidates }: Advice): {
  readonly percent: number | null
  readonly isTaken: boolean
  readonly candidate: Candidate | null
} {
  const nearest = caveats.find(({ kind }) => kind === 'none_keeps')
  const percent = recommended_percent ?? (nearest?.kind === 'none_keeps' ? nearest.nearest_percent : null)
  const candidate = candidates.find(({ overcommit_percent }) => overcommit_percent === percent) ?? null
  return { percent, isTaken: recommended_percent !== null, candidate }
}
