/**
 * Activity models: batch traces say when a task was present, not when it used its GPU. A model generates
 * alternating busy and idle phases; the result must be labelled synthetic.
 */
import type { RandomStream } from '../../controller/ports/random.ts'
import type { DurationMs } from '../../protocol/units.ts'
import {
  type Distribution,
  exponential,
  lognormal,
  quantileTable,
  type RunLengthDistribution,
} from '../kernel/distributions.ts'
import type { Work } from './trace-format.ts'

/**
 * Splits a residence (wall time from start to end of a task that runs alone, 1 ms or more) into phases of
 * exactly that total. The same stream yields the same phases.
 */
export type ActivityModel = (residenceMs: DurationMs, random: RandomStream) => Work

/** Models with their descriptions. */
export const ACTIVITY_MODELS = {
  'always-busy': 'The GPU works from start to end.',
  serving: 'An inference server as in Alibaba GenTD26: no GPU work in 66.8% of the time.',
  training: 'Work for half an hour at the median, with gaps of 20 s at the median.',
} as const
export type ActivityModelName = keyof typeof ACTIVITY_MODELS
export const ACTIVITY_MODEL_NAMES = Object.keys(ACTIVITY_MODELS) as readonly ActivityModelName[]

/** Returns the model of that name. Throws RangeError with the list of models. */
export function activityModel(name: string): ActivityModel {
  switch (name as ActivityModelName) {
    case 'always-busy':
      return alwaysBusy
    case 'serving':
      return serving
    case 'training':
      return training
  }
  throw new RangeError(
    `no activity model ${JSON.stringify(name)}: there are ${ACTIVITY_MODEL_NAMES.join(', ')}`,
  )
}

/** The GPU works from start to end. */
export const alwaysBusy: ActivityModel = (residenceMs) => ({ kind: 'duration', ms: wholeMs(residenceMs) })

/**
 * Measured on 144 pods that serve image generation (Alibaba GenTD26; design "The simulator", Model of a GPU):
 * the share of time without GPU work, and the lengths of the idle runs.
 */
export const GENTD26 = {
  idleShare: 0.668,
  idleRunP50S: 171,
  idleRunP90S: 1026,
  idleRunP99S: 5014,
  /** Share of the idle runs that last at least 300 s, and their share of the idle time. */
  longRunS: 300,
  longRunShare: 0.293,
  longRunTimeShare: 0.825,
} as const

/**
 * Idle runs of `serving`, in ms: the four published quantiles, and two ends that are not published. The
 * shortest is 57 s, because 171 and 1026 are multiples of 57: runs shorter than one sample were not observed.
 * The longest is chosen so that runs of at least 300 s are 82.5 % of the idle time.
 */
export const SERVING_IDLE_RUNS: RunLengthDistribution = quantileTable([
  [0, 57_000],
  [0.5, GENTD26.idleRunP50S * 1000],
  [1 - GENTD26.longRunShare, GENTD26.longRunS * 1000],
  [0.9, GENTD26.idleRunP90S * 1000],
  [0.99, GENTD26.idleRunP99S * 1000],
  [1, 26_280_000],
])

/**
 * Busy runs of `serving`, in ms. Only their share of time is published; that they are memoryless is an
 * assumption of Headroom.
 */
export const SERVING_BUSY_RUNS: RunLengthDistribution = exponential(
  (SERVING_IDLE_RUNS.mean * (1 - GENTD26.idleShare)) / GENTD26.idleShare,
)

/**
 * Inference servers as in GENTD26. The residence is a window of an endless alternation (it begins in the
 * middle of a run), so the expected idle share is 66.8% for any residence, and a short one is often all idle
 * or all busy.
 */
export const serving: ActivityModel = (residenceMs, random) => {
  const startsIdle = random() < GENTD26.idleShare
  const first = (startsIdle ? SERVING_IDLE_RUNS : SERVING_BUSY_RUNS).sampleRemainder(random)
  return alternate(residenceMs, startsIdle, first, SERVING_BUSY_RUNS, SERVING_IDLE_RUNS, random)
}

/**
 * Training jobs: long work with short gaps (data loading, evaluation, checkpoints). An assumption of
 * Headroom, without a published measurement: busy runs of 30 minutes at the median, gaps of 20 s at the
 * median.
 */
export const training: ActivityModel = onOff(lognormal(1_800_000, 0.6), lognormal(20_000, 0.8))

/**
 * Alternating busy and idle runs, in ms from the given distributions, busy first unless `startsIdle`, until
 * the residence is over.
 */
export function onOff(busyRuns: Distribution, idleRuns: Distribution, startsIdle = false): ActivityModel {
  const first = startsIdle ? idleRuns : busyRuns
  return (residenceMs, random) =>
    alternate(residenceMs, startsIdle, first.sample(random), busyRuns, idleRuns, random)
}

/** Bound on the phases of one task: 27 years of `serving`. */
export const MAX_PHASES = 1_000_000

/**
 * A task that starts idle still touches its GPU for 1 ms, and every later run lasts at least 1 ms, so that no
 * phase is empty of work.
 */
function alternate(
  residenceMs: DurationMs,
  startsIdle: boolean,
  firstRunMs: number,
  busyRuns: Distribution,
  idleRuns: Distribution,
  random: RandomStream,
): Work {
  let leftMs = wholeMs(residenceMs)
  const take = (runMs: number): DurationMs => {
    const ms = Math.min(leftMs, wholeMs(runMs))
    leftMs -= ms
    return ms
  }
  const firstBusyMs = take(startsIdle ? 1 : firstRunMs)
  const firstIdleMs = take(startsIdle ? firstRunMs : idleRuns.sample(random))
  const phases: Array<readonly [DurationMs, DurationMs]> = [[firstBusyMs, firstIdleMs]]
  while (leftMs > 0) {
    if (phases.length === MAX_PHASES)
      throw new RangeError(`residence of ${residenceMs} ms has more than ${MAX_PHASES} phases`)
    const busyMs = take(busyRuns.sample(random))
    phases.push([busyMs, take(idleRuns.sample(random))])
  }
  return { kind: 'phases', phases }
}

function wholeMs(ms: number): DurationMs {
  return Math.max(1, Math.round(ms))
}
