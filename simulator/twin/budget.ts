/**
 * How far and how often a forecast may run the live state within its time limit. The caller measures time;
 * nothing here does.
 */
import type { ClusterSnapshot } from '../../controller/ports/twin.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { drawFuture, runFork } from './fork.ts'
import type { WorkloadModel } from './workload-model.ts'

export interface Budget {
  /** Share of the time that is used up, increasing from 0. */
  spent(): number
  readonly maxRuns: number
  readonly horizonMs: DurationMs
}

/** Share of the time for a trial run. */
const TRIAL_SHARE = 1 / 12
/** A shorter forecast is not useful. */
const LEAST_HORIZON_MS = 600_000
const ROUND_MS = 60_000

/** How far a run gets in its share of the time, in whole minutes; null: not far enough to be useful. */
export async function affordableHorizon(
  image: ClusterSnapshot,
  model: WorkloadModel,
  budget: Budget,
): Promise<DurationMs | null> {
  const { horizonMs } = budget
  const limit = budget.spent() + TRIAL_SHARE
  const { reachedMs } = await runFork(drawFuture(image, model, 1, horizonMs), {
    untilMs: horizonMs,
    isGivenUp: () => budget.spent() > limit,
  })
  const affordableMs = Math.floor(reachedMs / ROUND_MS) * ROUND_MS
  return affordableMs < LEAST_HORIZON_MS ? null : affordableMs
}
