/**
 * Forecasts new limits of nodes for a cluster that keeps no history: all tasks stay, and none arrives. Pairs
 * of runs with the same draws, as in change-forecast.ts.
 */
import type { ClusterSnapshot, NoForecast, RecentPast } from '../../controller/ports/twin.ts'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { DurationMs, Mib, Percent } from '../../protocol/units.ts'
import { affordableHorizon, type Budget } from './budget.ts'
import { drawFuture, type ForkResult, runFork } from './fork.ts'
import { quantileOf, risingOf } from './quantile.ts'
import { TOO_LARGE } from './start-forecast.ts'
import { stayingModelOf } from './workload-model.ts'

const LEAST_PAIRS = 3

export interface LimitsChange {
  readonly config: Partial<ConfigFields>
  /** By node id; nodes that are not in it keep their limits. */
  readonly nodes: ReadonlyMap<string, { readonly percent: Percent; readonly reserveMib: Mib }>
}

export interface LimitsForecast {
  readonly horizonMs: DurationMs
  /** Pairs of runs. */
  readonly runs: number
  /** Tasks that wait for their first start. */
  readonly waiting: number
  /** Tasks alternate as they have; false: none has been seen to, so that each goes on as it does now. */
  readonly isActivityKnown: boolean
  readonly before: LimitsFigures
  readonly after: LimitsFigures
}

/** Medians over the runs. */
export interface LimitsFigures {
  /** Of the waiting tasks. */
  readonly started: number
  /** From now on, of the median waiting task; null: fewer than half of them start within the horizon. */
  readonly waitMs: DurationMs | null
  readonly swapOutsPerHour: number
}

export async function forecastLimits(
  image: ClusterSnapshot,
  past: RecentPast,
  { config, nodes }: LimitsChange,
  budget: Budget,
): Promise<LimitsForecast | NoForecast> {
  const model = stayingModelOf(image, past)
  const horizonMs = await affordableHorizon(image, model, budget)
  if (horizonMs === null) return TOO_LARGE
  const waiting = image.tasks.filter(
    ({ firstStartedAt, isHeld, placement }) => firstStartedAt === null && !isHeld && placement === null,
  ).length
  const [before, after]: [ForkResult[], ForkResult[]] = [[], []]
  while (before.length < budget.maxRuns && (before.length < LEAST_PAIRS || budget.spent() < 1)) {
    const draw = drawFuture(image, model, before.length + 1, horizonMs)
    before.push(await runFork(draw, { untilMs: horizonMs }))
    const changed = draw.nodes.map((node) => {
      const limits = node.id === undefined ? undefined : nodes.get(node.id)
      if (limits === undefined) return node
      return { ...node, overcommitPercent: limits.percent, safetyReserveMib: limits.reserveMib }
    })
    after.push(await runFork({ ...draw, nodes: changed }, { untilMs: horizonMs, change: { config } }))
  }
  return {
    ...{ horizonMs, runs: before.length, waiting },
    isActivityKnown: model.wanting.ms.length > 0 && model.idle.ms.length > 0,
    before: figuresOf(before, waiting),
    after: figuresOf(after, waiting),
  }
}

function figuresOf(runs: readonly ForkResult[], waiting: number): LimitsFigures {
  const median = (of: (run: ForkResult) => number): number => quantileOf(risingOf(runs.map(of)), 50) ?? 0
  const waitMs = median(({ startedAfterMs }) => {
    // A task that did not start counts as later than all others.
    const missing = Array.from({ length: waiting - startedAfterMs.size }, () => Infinity)
    return quantileOf([...risingOf([...startedAfterMs.values()]), ...missing], 50) ?? Infinity
  })
  return {
    started: Math.round(median(({ startedAfterMs }) => startedAfterMs.size)),
    waitMs: waitMs === Infinity ? null : waitMs,
    swapOutsPerHour: median(({ figures }) => figures.swapOutsPerHour),
  }
}
