/**
 * One run of a scenario: from its start until every task that can end has ended (docs/simulation-model.md,
 * "When a run ends").
 */
import type { DurationMs, Percent } from '../../protocol/units.ts'
import { arrivalsUntil } from './arrivals-until.ts'
import type { BoundedArrivals } from './arrivals-until.ts'
import { RunLoop } from './run-loop.ts'
import type { StepObserver } from './run-loop.ts'
import type { ControllerWatch, VictimOverride } from '../world/controller-process.ts'
import type { FaultCounts } from '../results/fault-tally.ts'
import { OperatorAgenda } from './operator-agenda.ts'
import type { OperatorClient } from './operator-agenda.ts'
import { ProgressMonitor } from './progress-monitor.ts'
import type { ProgressOptions } from './progress-monitor.ts'
import type { OpenOutcome, TaskOutcome } from '../results/collector.ts'
import type { JournalSink } from '../results/journal.ts'
import type { RunResult } from '../results/result.ts'
import type { Metrics } from '../scenario/metrics.ts'
import type { SeriesSampler } from './series-sampler.ts'
import { startTasksOf, workloadOf } from '../scenario/generate.ts'
import { idOfNode } from '../scenario/node-id.ts'
import type { Scenario } from '../scenario/scenario.ts'
import { createSeededRandom } from '../kernel/seeded-random.ts'
import type { BusMode } from '../network/sim-bus.ts'
import { World } from '../world/world.ts'

/** The part of a scenario that a run needs. */
export type RunPlan = Pick<
  Scenario,
  'seed' | 'clock' | 'nodes' | 'config' | 'ownerLimits' | 'workload' | 'operator'
> &
  Partial<Pick<Scenario, 'faults'>>

/** Origin of the result. */
export interface RunIdentity {
  readonly scenarioSha256: string | null
  readonly traceSha256: string | null
  readonly version: string
}

/** Measures the time spent deciding. */
export interface Stopwatch {
  start(): void
  stop(): void
}

/**
 * @param pump runs everything that is due in the current instant, or until the answer arrives. With faults,
 *   an answer may take time: time then advances until it arrives or the controller is gone
 */
export type OpenOperatorClient = (
  world: World,
  pump: (isAnswered: () => boolean) => Promise<void>,
) => Promise<OperatorClient>

export interface RunOptions extends ProgressOptions {
  /** Replaces the scenario's own. */
  readonly seed?: number
  readonly untilMs?: DurationMs
  readonly overcommitPercent?: Percent
  readonly busMode?: BusMode
  readonly areHeartbeatsEnacted?: boolean
  readonly journalSink?: JournalSink
  readonly onOutcome?: (outcome: TaskOutcome) => void
  readonly sampler?: SeriesSampler
  readonly stopwatch?: Stopwatch
  /** Required if the scenario has operator actions. */
  readonly openOperatorClient?: OpenOperatorClient
  /** Observes swap-out decisions, and may replace a victim. */
  readonly victimOverride?: VictimOverride
  /** The world's store keeps every task, to be read afterwards. */
  readonly keepsTasks?: boolean
  readonly watch?: (world: World) => StepObserver
  /** Sees all inputs of a controller; called at each start. */
  readonly record?: () => ControllerWatch
  /** Called after the start, before the workload. */
  readonly onStarted?: (world: World) => void
}

export interface Run {
  readonly result: RunResult
  /** Tasks that have not ended, in the order of submission. */
  readonly open: readonly OpenOutcome[]
  /** Unexpected answers to the operator. Not empty: the run has failed. */
  readonly operatorFaults: readonly string[]
  /** It ended because nothing has happened for long, and time alone changes nothing. */
  readonly isQuiet: boolean
  readonly world: World
}

/** Throws TraceError for an unusable trace, and errors of broken invariants. */
export async function runScenario(
  scenario: RunPlan,
  identity: RunIdentity,
  options: RunOptions = {},
): Promise<Run> {
  const plan = planOf(scenario, options)
  const start = startTasksOf(plan, createSeededRandom(plan.seed))
  const progress = new ProgressMonitor(plan.clock, options)
  for (const { state } of start) if (state.placed !== null) progress.placedBefore()
  const world = new World(plan, {
    seed: plan.seed,
    busMode: options.busMode ?? 'reference',
    areHeartbeatsEnacted: options.areHeartbeatsEnacted ?? false,
    journalSink: options.journalSink ?? null,
    onOutcome: options.onOutcome ?? null,
    onEvents: (events) => progress.saw(events),
    start,
    keepsTasks: options.keepsTasks ?? false,
    ...(options.record === undefined ? {} : { watch: options.record }),
    ...(options.victimOverride === undefined ? {} : { victimOverride: options.victimOverride }),
  })
  world.faults?.onSetBack(({ stored }) =>
    progress.setBack(stored.openTasks.filter(({ placement }) => placement !== null).length),
  )
  world.controllers.timeDecisions(options.stopwatch ?? null)
  const watcher = options.watch?.(world) ?? null
  await world.start()
  options.onStarted?.(world)
  const pump = (isAnswered: () => boolean): Promise<void> =>
    world.runUntil(world.faults === null ? world.nowMs : null, () => {
      watcher?.afterStep()
      return isAnswered()
    })
  const client = plan.operator.length > 0 ? ((await options.openOperatorClient?.(world, pump)) ?? null) : null
  const agenda = new OperatorAgenda(plan.operator, client, world.clock, plan.clock.startMs, (name) =>
    nodeIdIn(plan, name),
  )
  const arrivals = arrivalsUntil(
    workloadOf(plan, world.random),
    plan.clock.untilMs,
    (id) => world.controller.views.openTask(id) !== undefined,
  )
  world.feed(arrivals)
  try {
    await new RunLoop(world, {
      clock: plan.clock,
      arrivals,
      agenda,
      progress,
      watcher,
      sampler: options.sampler ?? null,
    }).runToEnd()
  } finally {
    await closeAll(arrivals, agenda)
  }
  return {
    result: resultOf(world, plan, identity),
    open: [...world.collector.open()],
    operatorFaults: agenda.faults,
    isQuiet: progress.isQuiet,
    world,
  }
}

/** Generators that end with the old end time end with the new one. */
export function planOf(
  scenario: RunPlan,
  { seed, untilMs, overcommitPercent }: Pick<RunOptions, 'seed' | 'untilMs' | 'overcommitPercent'>,
): RunPlan {
  const { clock, config, workload } = scenario
  const until = untilMs ?? clock.untilMs
  return {
    ...scenario,
    seed: seed ?? scenario.seed,
    clock: { ...clock, untilMs: until },
    config:
      overcommitPercent === undefined
        ? config
        : { ...config, default_vram_overcommit_percent: overcommitPercent },
    workload: workload.map((item) =>
      item.kind === 'generate' && item.untilMs === clock.untilMs ? { ...item, untilMs: until } : item,
    ),
  }
}

/** Returns the id of the node with this name. */
export function nodeIdIn({ nodes }: RunPlan, name: string): string {
  return idOfNode(nodes.find((node) => node.name === name) ?? { name })
}

async function closeAll(arrivals: BoundedArrivals, agenda: OperatorAgenda): Promise<void> {
  await arrivals.close()
  await agenda.close()
}

function begunOnly(counts: FaultCounts): Partial<FaultCounts> {
  return Object.fromEntries(Object.entries(counts).filter(([, { begun }]) => begun > 0))
}

function resultOf(
  world: World,
  plan: RunPlan,
  { scenarioSha256, traceSha256, version }: RunIdentity,
): RunResult {
  const metrics: Metrics = world.metrics()
  return {
    digest: world.digest(),
    scenario_sha256: scenarioSha256,
    trace_sha256: traceSha256,
    seed: plan.seed,
    version,
    virtual_s: world.nowMs / 1000,
    metrics,
    ...(world.faults === null ? {} : { faults: begunOnly(world.faults.faultCounts()) }),
  }
}
