/**
 * Forecasts when each waiting task starts: runs the live state several times, each with another draw of the
 * unknown facts.
 */
import type {
  ClusterSnapshot,
  NoForecast,
  RecentPast,
  StartForecast,
  TaskStartForecast,
} from '../../controller/ports/twin.ts'
import type { Instant } from '../../protocol/units.ts'
import { affordableHorizon } from './budget.ts'
import type { Budget } from './budget.ts'
import { drawFuture, runFork } from './fork.ts'
import { quantileOf, risingOf } from './quantile.ts'
import { isModel, workloadModelOf } from './workload-model.ts'

/** With fewer runs there is no forecast. */
const LEAST_RUNS = 4

export async function forecastStarts(
  image: ClusterSnapshot,
  past: RecentPast,
  budget: Budget,
): Promise<StartForecast | NoForecast> {
  const model = workloadModelOf(image, past)
  if (!isModel(model)) return model
  const horizonMs = await affordableHorizon(image, model, budget)
  if (horizonMs === null) return TOO_LARGE
  const waiting = image.tasks.filter(
    ({ firstStartedAt, isHeld, placement }) => firstStartedAt === null && !isHeld && placement === null,
  )
  const starts = new Map<string, Instant[]>(waiting.map(({ id }) => [id, []]))
  let runs = 0
  for (; runs < budget.maxRuns && (runs < LEAST_RUNS || budget.spent() < 1); runs++) {
    const draw = drawFuture(image, model, runs + 1, horizonMs)
    const { startedAfterMs } = await runFork(draw, { untilMs: horizonMs, endsWhenStarted: true })
    for (const [id, afterMs] of startedAfterMs) starts.get(id)?.push(image.at + afterMs)
  }
  return {
    at: image.at,
    horizonMs,
    runs,
    assumes: model.assumes,
    starts: new Map([...starts].map(([id, instants]) => [id, forecastOf(instants, runs)])),
  }
}

export const TOO_LARGE: NoForecast = {
  reason: 'TOO_LARGE',
  detail:
    'this host cannot run the cluster on far enough in the time that a forecast may take: the cluster is ' +
    'too large, or the host is too busy',
}

/** A run in which it did not start counts as later than all known ones. */
function forecastOf(instants: readonly Instant[], runs: number): TaskStartForecast {
  const rising = [...risingOf(instants), ...Array.from({ length: runs - instants.length }, () => Infinity)]
  const at = (percent: number): Instant | null => {
    const value = quantileOf(rising, percent)
    return value === null || value === Infinity ? null : value
  }
  return { p50: at(50), p90: at(90), notWithinHorizon: (runs - instants.length) / runs }
}
