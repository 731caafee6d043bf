/**
 * Recommends an overcommit percentage from a sweep: the one with the highest mean utilization among those
 * whose objectives hold in 95 of 100 seeds. Everything in an Advice can be recomputed from runs.csv;
 * docs/planning.md says how.
 */
import type { Percent } from '../../../protocol/units.ts'
import { type Band, bandOf, byPercent, type SweepRun } from '../sweep/sweep.ts'
import { type Change, changesBetween, utilizationDifference } from './change.ts'
import type { Idleness } from './idleness.ts'
import { kneeOf } from './knee.ts'
import { type Objective, objectiveText, valueOfObjective } from './objective.ts'
import type { PairedDifference } from './paired-difference.ts'

/** The verdict on one percentage. */
export interface Candidate {
  readonly overcommit_percent: Percent
  readonly seeds: number
  readonly utilization_percent: Band | null
  /** One for each objective, in order. */
  readonly objectives: readonly JudgedObjective[]
  /** Every objective holds. */
  readonly keeps: boolean
}

export interface JudgedObjective {
  readonly objective: string
  /**
   * Nearest-rank 95th percentile over the seeds; null if a run has no such figure, in which case the
   * objective does not hold.
   */
  readonly p95: number | null
  readonly max: number
  readonly keeps: boolean
}

/**
 * Another percentage that meets the objectives, and whose utilization the seeds cannot distinguish from the
 * recommended one's.
 */
export interface Tie {
  readonly overcommit_percent: Percent
  /** Recommended minus this one, in percentage points, over the seeds of both. */
  readonly difference: PairedDifference
}

/** A caveat that the reader of a recommendation must know. */
export type Caveat =
  /**
   * More than half of the GPU-hours belong to tasks that use whole GPUs, which overcommit does not change.
   */
  | { readonly kind: 'mostly_exclusive'; readonly exclusive_percent: number }
  /** No percentage meets the objectives; the nearest one, and its worst objective. */
  | {
      readonly kind: 'none_keeps'
      readonly nearest_percent: Percent
      readonly objective: string
      readonly p95: number | null
    }
  /** Fewer than two seeds, or percentages that the seeds cannot distinguish. */
  | { readonly kind: 'too_few_seeds'; readonly seeds: number; readonly ties: readonly Tie[] }
  /** No task is ever idle for the idle period. */
  | { readonly kind: 'no_idleness'; readonly idle_period_s: number; readonly idle_percent: number }
  /** Nothing was swapped out at any percentage. */
  | { readonly kind: 'never_swapped' }
  /** All runs of a percentage have the same figures, whatever their seed: the scenario draws nothing. */
  | { readonly kind: 'seeds_alike'; readonly seeds: number }
  /** All runs of a seed have the same figures. */
  | { readonly kind: 'no_effect' }
  /** The recommended percentage is the highest one tried. */
  | { readonly kind: 'highest_tried'; readonly overcommit_percent: Percent }
  /**
   * The largest number of tasks that fit on no node in any run. No objective counts their wait, so nothing is
   * recommended.
   */
  | { readonly kind: 'fit_nowhere'; readonly tasks: number; readonly submitted: number }
  /** Some percentages ran with other seeds than the rest. */
  | { readonly kind: 'uneven_seeds' }

export interface Advice {
  /** Objectives in their original notation: `starvation.total<=20`. */
  readonly objectives: readonly string[]
  /** Null if no percentage meets the objectives. */
  readonly recommended_percent: Percent | null
  /** Verdict on the recommended percentage. */
  readonly utilization_percent: Band | null
  /** A second opinion: where utilization stops growing by much (Kneedle); null: the curve has no knee. */
  readonly knee_percent: Percent | null
  /**
   * Recommended minus the lowest percentage tried, in points of utilization, paired by seed; null without a
   * recommendation.
   */
  readonly gain: { readonly over_percent: Percent; readonly difference: PairedDifference } | null
  /**
   * Changes from the lowest percentage tried to the recommended one, the largest gain first; empty without a
   * recommendation, or if both are the same.
   */
  readonly changes: readonly Change[]
  readonly caveats: readonly Caveat[]
  /** By increasing percentage. */
  readonly candidates: readonly Candidate[]
}

export interface AdvisorInput {
  /** Runs of one combination of all other fields; at least one. */
  readonly runs: readonly SweepRun[]
  /** At least one. */
  readonly objectives: readonly Objective[]
  /** Idleness of the workload; null: unknown. */
  readonly idleness: Idleness | null
}

export function advise({ runs, objectives, idleness }: AdvisorInput): Advice {
  const groups = [...byPercent(runs)].sort(([a], [b]) => a - b)
  const candidates = groups.map(([percent, group]) => candidateOf(percent, group, objectives))
  const unplaceable = mostThatFitNowhere(runs)
  const best = unplaceable === null ? bestOf(candidates) : null
  const lowest = candidates[0] as Candidate
  const ties = best === null ? [] : tiesWith(best, candidates, runs)
  return {
    objectives: objectives.map(objectiveText),
    recommended_percent: best?.overcommit_percent ?? null,
    utilization_percent: best?.utilization_percent ?? null,
    knee_percent: kneeBeyondSpread(candidates),
    gain:
      best === null
        ? null
        : {
            over_percent: lowest.overcommit_percent,
            difference: utilizationDifference(runs, lowest.overcommit_percent, best.overcommit_percent),
          },
    changes:
      best === null || best === lowest
        ? []
        : changesBetween(runs, lowest.overcommit_percent, best.overcommit_percent),
    caveats: caveatsOf({ runs, candidates, best, ties, idleness, unplaceable }),
    candidates,
  }
}

function candidateOf(
  percent: Percent,
  runs: readonly SweepRun[],
  objectives: readonly Objective[],
): Candidate {
  const judged = objectives.map((objective): JudgedObjective => {
    const values = runs.map(({ metrics }) => valueOfObjective(objective, metrics))
    const p95 = values.includes(null) ? null : (bandOf(values)?.p95 ?? null)
    return {
      objective: objectiveText(objective),
      p95,
      max: objective.max,
      keeps: p95 !== null && p95 <= objective.max,
    }
  })
  return {
    overcommit_percent: percent,
    seeds: runs.length,
    utilization_percent: bandOf(runs.map(({ metrics }) => metrics.utilization_percent)),
    objectives: judged,
    keeps: judged.every(({ keeps }) => keeps),
  }
}

/**
 * 1. Meets every objective.
 * 2. Higher mean utilization.
 * 3. Lower percentage.
 */
function bestOf(candidates: readonly Candidate[]): Candidate | null {
  let best: Candidate | null = null
  for (const each of candidates) {
    if (each.keeps && (best === null || meanUtilization(each) > meanUtilization(best))) best = each
  }
  return best
}

function meanUtilization({ utilization_percent }: Candidate): number {
  return utilization_percent?.mean ?? -1
}

/** A curve that rises by less counts as flat, whatever its shape. */
const LEAST_KNEE_RISE_POINTS = 1

/**
 * Returns the knee of mean utilization if the curve rises by more than the spread of the seeds (p10 to p90),
 * else null.
 */
function kneeBeyondSpread(candidates: readonly Candidate[]): Percent | null {
  const bands = candidates.flatMap(({ overcommit_percent: x, utilization_percent: y }) =>
    y === null ? [] : [{ x, y }],
  )
  const knee = kneeOf(bands.map(({ x, y }) => ({ x, y: y.mean })))
  if (knee === null) return null
  const means = bands.map(({ y }) => y.mean)
  const rise = Math.max(...means) - Math.min(...means)
  const spread = Math.max(...bands.map(({ y }) => y.p90 - y.p10))
  return rise > Math.max(spread, LEAST_KNEE_RISE_POINTS) ? knee : null
}

function tiesWith(best: Candidate, candidates: readonly Candidate[], runs: readonly SweepRun[]): Tie[] {
  return candidates
    .filter(({ keeps, overcommit_percent }) => keeps && overcommit_percent !== best.overcommit_percent)
    .map(({ overcommit_percent }) => ({
      overcommit_percent,
      difference: utilizationDifference(runs, overcommit_percent, best.overcommit_percent),
    }))
    .filter(({ difference }) => !difference.told_apart)
}

// ── caveats ──────────────────────────────────────────────────────────────────

interface Judged {
  readonly runs: readonly SweepRun[]
  readonly candidates: readonly Candidate[]
  readonly best: Candidate | null
  readonly ties: readonly Tie[]
  readonly idleness: Idleness | null
  readonly unplaceable: Caveat | null
}

/** A larger share of the GPU-hours is "mostly". */
const MOSTLY_PERCENT = 50

function caveatsOf(judged: Judged): Caveat[] {
  const { runs, candidates, best, ties, idleness, unplaceable } = judged
  const caveats: Caveat[] = []
  if (idleness !== null && idleness.exclusivePercent > MOSTLY_PERCENT)
    caveats.push({ kind: 'mostly_exclusive', exclusive_percent: idleness.exclusivePercent })
  if (!candidates.some(({ keeps }) => keeps)) caveats.push(nearestOf(candidates))
  if (unplaceable !== null) caveats.push(unplaceable)
  const hasNoEffect = candidates.length > 1 && isWithoutEffect(runs)
  if (hasNoEffect) caveats.push({ kind: 'no_effect' })
  const still = whyNothingIsSwapped(judged)
  if (still !== null) caveats.push(still)
  const areAlike = runs.length > candidates.length && areSeedsAlike(runs)
  if (areAlike) caveats.push({ kind: 'seeds_alike', seeds: new Set(runs.map(({ seed }) => seed)).size })
  if (best !== null && !hasNoEffect) {
    const { seeds, overcommit_percent } = best
    if (!areAlike && (seeds < 2 || ties.length > 0)) caveats.push({ kind: 'too_few_seeds', seeds, ties })
    if (candidates.length > 1 && overcommit_percent === candidates.at(-1)?.overcommit_percent)
      caveats.push({ kind: 'highest_tried', overcommit_percent })
  }
  if (new Set(candidates.map(({ overcommit_percent }) => seedsOf(runs, overcommit_percent))).size > 1)
    caveats.push({ kind: 'uneven_seeds' })
  return caveats
}

/**
 * The percentage that is nearest to meeting every objective.
 * 1. Its worst objective exceeds its maximum by the smaller factor.
 * 2. Lower percentage.
 */
function nearestOf(candidates: readonly Candidate[]): Caveat {
  const [nearest] = candidates
    .map((candidate) => ({ candidate, worst: worstOf(candidate.objectives) }))
    .sort(
      (a, b) =>
        excessOf(a.worst) - excessOf(b.worst) ||
        a.candidate.overcommit_percent - b.candidate.overcommit_percent,
    )
  const { candidate, worst } = nearest as { readonly candidate: Candidate; readonly worst: JudgedObjective }
  return {
    kind: 'none_keeps',
    nearest_percent: candidate.overcommit_percent,
    objective: worst.objective,
    p95: worst.p95,
  }
}

function worstOf(objectives: readonly JudgedObjective[]): JudgedObjective {
  return objectives.reduce((worst, each) => (excessOf(each) > excessOf(worst) ? each : worst))
}

/**
 * Returns the factor by which the figure exceeds the maximum; a missing figure exceeds any. Finite, so that
 * factors compare.
 */
function excessOf({ p95, max }: JudgedObjective): number {
  if (p95 === null) return Number.MAX_VALUE
  return max === 0 ? Math.min(p95 * 1e9, 1e300) : p95 / max
}

function mostThatFitNowhere(runs: readonly SweepRun[]): Caveat | null {
  let most: Extract<Caveat, { readonly kind: 'fit_nowhere' }> | null = null
  for (const { metrics } of runs) {
    const { fit_nowhere = 0, submitted } = metrics.tasks
    if (fit_nowhere > (most?.tasks ?? 0)) most = { kind: 'fit_nowhere', tasks: fit_nowhere, submitted }
  }
  return most
}

/** A claim about all tasks requires at least one task, all tasks examined, and no run that contradicts it. */
function whyNothingIsSwapped({ runs, idleness }: Judged): Caveat | null {
  const isNothingSwapped = runs.every(({ metrics }) => metrics.swaps_per_hour === 0)
  if (
    idleness !== null &&
    idleness.isComplete &&
    idleness.tasks > 0 &&
    idleness.swappable === 0 &&
    isNothingSwapped
  ) {
    return {
      kind: 'no_idleness',
      idle_period_s: idleness.idlePeriodMs / 1000,
      idle_percent: idleness.idlePercent,
    }
  }
  const overcommitted = runs.filter(({ overcommit_percent }) => overcommit_percent > 0)
  const isStill =
    overcommitted.length > 0 && overcommitted.every(({ metrics }) => metrics.swaps_per_hour === 0)
  return isStill ? { kind: 'never_swapped' } : null
}

function isWithoutEffect(runs: readonly SweepRun[]): boolean {
  return areAlikeBy(runs, ({ seed }) => seed)
}

function areSeedsAlike(runs: readonly SweepRun[]): boolean {
  return areAlikeBy(runs, ({ overcommit_percent }) => overcommit_percent)
}

/** Returns true if all runs with the same key have the same figures. */
function areAlikeBy(runs: readonly SweepRun[], keyOf: (run: SweepRun) => number): boolean {
  const known = new Map<number, string>()
  return runs.every((run) => {
    const text = JSON.stringify(run.metrics)
    const first = known.get(keyOf(run)) ?? text
    known.set(keyOf(run), first)
    return first === text
  })
}

function seedsOf(runs: readonly SweepRun[], percent: Percent): string {
  const seeds = runs
    .filter(({ overcommit_percent }) => overcommit_percent === percent)
    .map(({ seed }) => seed)
  return seeds.sort((a, b) => a - b).join()
}
