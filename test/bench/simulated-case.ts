/**
 * One simulated run from its first task to its last, with the number of its events, for comparison with the
 * bare loop.
 */
import type { ArrivalSource } from '../../simulator/scenario/arrivals.ts'
import { makeSource } from '../../simulator/scenario/arrivals.ts'
import type { Scenario } from '../../simulator/scenario/scenario.ts'
import type { Random } from '../../controller/ports/random.ts'
import { World } from '../../simulator/world/world.ts'
import { type Chains, ChainRecorder } from './event-chains.ts'
import { collectGarbage, timedAsync } from './stopwatch.ts'
import { changesOf } from './work-steps.ts'

export interface SimulatedCase {
  readonly scenario: Scenario
  readonly arrivals: (random: Random) => ArrivalSource
}

export interface SimulatedRun {
  /**
   * Arrivals, starts, ends, changes of activity, and completed swaps in each direction. No heartbeats,
   * messages or timers.
   */
  readonly events: number
  readonly tasks: number
  readonly swaps: number
  readonly waitedS: number
  readonly cpuS: number
}

/**
 * All features of a normal run are on: swaps, metrics and, unless it is switched off, the journal's digest.
 */
export function runCase(one: SimulatedCase, isJournalOff = false): Promise<SimulatedRun> {
  return run(one, isJournalOff, null)
}

/** The same run, recorded: the input of the bare loop for the same events. */
export async function recordCase(
  one: SimulatedCase,
): Promise<{ readonly run: SimulatedRun; readonly chains: Chains }> {
  const recorder = new ChainRecorder(one.scenario.clock.startMs)
  return { run: await run(one, false, recorder), chains: recorder.chains() }
}

/**
 * Kept until the next run has ended. Otherwise forced collections between runs would discard the hidden
 * classes of its objects, and with them the compiled code: every round would pay for them again, while a
 * sweep, which forces no collection, pays once.
 */
const before: { world: World | null } = { world: null }

async function run(
  one: SimulatedCase,
  isJournalOff: boolean,
  recorder: ChainRecorder | null,
): Promise<SimulatedRun> {
  collectGarbage()
  const { scenario } = one
  let changes = 0
  const { cpuS, result } = await timedAsync(async () => {
    const listener = recorder === null ? {} : { onEvents: recorder.record.bind(recorder) }
    const world = new World(scenario, { seed: scenario.seed, isJournalOff, ...listener })
    await world.start()
    const source = one.arrivals(world.random)
    world.feed(
      makeSource(() => {
        const task = source.next()
        if (task !== null) {
          changes += changesOf(task.work)
          recorder?.arrived(task)
        }
        return task
      }),
    )
    await world.runUntil(null, () => world.isIdle())
    return { world, metrics: world.metrics(), digest: world.digest() }
  })
  const { world, metrics, digest } = result
  before.world = world
  if ((digest === null) !== isJournalOff) throw new Error('the journal is not as requested')
  const { submitted, completed, unfinished } = metrics.tasks
  if (unfinished > 0 || completed !== submitted)
    throw new Error(`${submitted - completed} of ${submitted} tasks did not complete`)
  const { swapOuts, swapIns } = world.controller.cluster.swapTotals
  const starts = world.collector.queueWaitMs.count
  return {
    events: submitted + starts + completed + changes + swapOuts + swapIns,
    tasks: submitted,
    swaps: swapOuts + swapIns,
    waitedS: metrics.queue_wait_s?.mean ?? 0,
    cpuS,
  }
}
