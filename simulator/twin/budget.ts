/**
 * How far and how often the live state may be run on in the time that somebody waits. Time is told by the
 * caller; here nothing measures it.
 */
import type { ClusterSnapshot } from '../../controller/ports/twin.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { drawFuture, runFork } from './fork.ts'
import type { WorkloadModel } from './workload-model.ts'

export interface Budget {
  /** The share of the time that is used up, rising from 0. */
  spent(): number
  readonly maxRuns: number
  readonly horizonMs: DurationMs
}

/** A trial run may take so much of the time. */
const TRIAL_SHARE = 1 / 12
/** Less far says too little. */
export const LEAST_HORIZON_MS = 600_000
const ROUND_MS = 60_000

/** How far a run comes in its share of the time, in whole minutes; null: not far enough to be of use. */
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
