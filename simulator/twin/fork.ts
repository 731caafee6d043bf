/** Runs the live state: one draw of the unknown facts, then the production controller in virtual time. */
import type { ConfigFields } from '../../controller/model/config.ts'
import type { ClusterSnapshot } from '../../controller/ports/twin.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { StartTask } from '../scenario/generate.ts'
import type { ScenarioNode, SimTask, TaskItem, TaskStart } from '../scenario/scenario.ts'
import type { Work } from '../trace/trace-format.ts'
import { seededStream } from '../kernel/seeded-random.ts'
import { snapshotOf } from '../snapshot/snapshot.ts'
import { World } from '../world/world.ts'
import { drawArrivals, sourceOf } from './draw-arrivals.ts'
import { drawWorkLeft } from './draw-work.ts'
import { ForkCourse, meanWaitS, type ForkFigures } from './fork-course.ts'
import { learnedModels } from '../calibration/learned-models.ts'
import type { WorkloadModel } from './workload-model.ts'

/** One draw of the unknown facts: the same for every compared arm. */
export interface Draw {
  readonly seed: number
  readonly startMs: Instant
  readonly nodes: readonly ScenarioNode[]
  readonly config: ConfigFields
  readonly start: readonly StartTask[]
  readonly arrivals: readonly SimTask[]
}

/** Changes of an arm. */
export interface Change {
  readonly config?: Partial<ConfigFields>
  /** By node id. */
  readonly node?: {
    readonly id: string
    readonly overcommitPercent?: number | null
    readonly reserveMib?: number | null
  }
}

export interface ForkResult {
  /** Since the start; for tasks that waited for their first start at the beginning and have started. */
  readonly startedAfterMs: ReadonlyMap<string, DurationMs>
  readonly figures: ForkFigures
  /** The same by equal intervals, as many as requested and reached. */
  readonly course: readonly ForkFigures[]
  /** How far it ran; less than requested if it was aborted. */
  readonly reachedMs: DurationMs
}

export function drawFuture(
  image: ClusterSnapshot,
  model: WorkloadModel,
  seed: number,
  untilMs: DurationMs,
): Draw {
  const gpuModelOf = learnedModels(model.speeds)
  const { startMs, nodes, config, tasks } = snapshotOf(image, {
    gpuModelOf: ({ id }) => gpuModelOf(id),
    workLeftOf: (record) => ({
      work: drawWorkLeft(model, record, image.at, seededStream(seed, `twin/work/${record.id}`)),
      doneUs: 0,
    }),
  })
  return {
    seed,
    startMs,
    nodes,
    config,
    start: tasks.map(startTaskOf),
    arrivals: drawArrivals(model, untilMs, seededStream(seed, 'twin/arrivals')),
  }
}

export interface ForkOptions {
  readonly change?: Change
  readonly untilMs: DurationMs
  /** Number of equal parts of the time for the course; absent: 1. */
  readonly intervals?: number
  /** Called after every step; true aborts. */
  readonly isGivenUp?: () => boolean
  /** Ends when all waiting tasks have started. */
  readonly endsWhenStarted?: boolean
}

export async function runFork(
  draw: Draw,
  { change = {}, untilMs, intervals = 1, isGivenUp = () => false, endsWhenStarted = false }: ForkOptions,
): Promise<ForkResult> {
  const waiting = new Set(
    draw.start
      .filter(({ state }) => state.firstStartedAgoMs === null && !state.isHeld)
      .map(({ request }) => request.id),
  )
  const startedAfterMs = new Map<string, DurationMs>()
  const plan = {
    clock: { startMs: draw.startMs, untilMs, drain: false },
    nodes: draw.nodes.map((node) => nodeAfter(node, change)),
    config: { ...draw.config, ...change.config },
  }
  const world = new World(plan, { seed: draw.seed, isJournalOff: true, start: draw.start })
  world.listen((events) => {
    for (const { kind, taskId, at } of events) {
      if (kind === 'task_started' && taskId !== null && waiting.delete(taskId))
        startedAfterMs.set(taskId, at - draw.startMs)
    }
  })
  await world.start()
  world.feed(sourceOf(draw.arrivals))
  const course = new ForkCourse(world)
  const isOver = (): boolean => isGivenUp() || (endsWhenStarted && waiting.size === 0)
  for (let part = 1; part <= intervals; part++) {
    const toMs = Math.round((untilMs * part) / intervals)
    await world.runUntil(toMs, isOver)
    if (world.nowMs < toMs) break
    course.cut()
  }
  return { startedAfterMs, figures: figuresOf(world), course: course.intervals, reachedMs: world.nowMs }
}

function startTaskOf(item: TaskItem): StartTask {
  const { request, work, allocSteps, cancelAtMs, state, stopTakesMs } = item
  return {
    at: 0,
    request,
    work: work as Work,
    allocSteps,
    cancelAt: cancelAtMs,
    state: state as TaskStart,
    ...(stopTakesMs === undefined ? {} : { stopTakesMs }),
  }
}

function nodeAfter(node: ScenarioNode, { node: change }: Change): ScenarioNode {
  if (change === undefined || change.id !== node.id) return node
  return {
    ...node,
    ...(change.overcommitPercent === undefined ? {} : { overcommitPercent: change.overcommitPercent }),
    ...(change.reserveMib === undefined ? {} : { safetyReserveMib: change.reserveMib }),
  }
}

function figuresOf(world: World): ForkFigures {
  const {
    starvation_percent: starvation,
    utilization_percent: utilization,
    swaps_per_hour: swaps,
  } = world.metrics()
  const { count, sum } = world.collector.queueWaitMs
  return {
    queueWaitS: meanWaitS(world, count, sum),
    starvationPercent: starvation.total,
    utilizationPercent: utilization ?? 0,
    swapOutsPerHour: swaps,
  }
}
