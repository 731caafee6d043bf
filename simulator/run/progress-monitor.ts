/** Monitors the progress of a run, and whether anything can still happen. */
import type { Event } from '../../controller/model/event.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { ScenarioClock } from '../scenario/scenario.ts'
import type { World } from '../world/world.ts'

/**
 * Longer than any waiting time of a configuration (7 days): without an event for this long, time alone
 * changes nothing.
 */
const QUIET_MS: DurationMs = 8 * 86_400_000
/** Steps between two checks. */
const CHECK_EVERY_STEPS = 1024

export interface ProgressOptions {
  /** Called often with the progress, 0 to 1. */
  readonly onProgress?: (fraction: number) => void
  /** Expected number of tasks; without it and without an end time, there is no progress to report. */
  readonly expectedTasks?: number
  /** Longer than any waiting time of this run; by default of any configuration. */
  readonly quietMs?: DurationMs
}

/** Reports the progress, and detects when the remaining tasks can never end. */
export class ProgressMonitor {
  readonly #untilMs: DurationMs | null
  readonly #expectedTasks: number | null
  readonly #quietMs: DurationMs
  readonly #onProgress: ((fraction: number) => void) | null
  #steps = 0
  #lastEventAt: Instant
  #placedTasks = 0
  /** The store may have lost nodes that have not registered again. */
  #wasSetBack = false
  /** No event for so long that time alone changes nothing. */
  isQuiet = false
  /** The remaining tasks wait forever, possibly swapped out. */
  isStuck = false

  constructor(clock: ScenarioClock, options: ProgressOptions) {
    this.#untilMs = clock.untilMs
    this.#expectedTasks = options.expectedTasks ?? null
    this.#onProgress = options.onProgress ?? null
    this.#quietMs = options.quietMs ?? QUIET_MS
    this.#lastEventAt = clock.startMs
  }

  /** A task is placed when the run begins. */
  placedBefore(): void {
    this.#placedTasks += 1
  }

  /** The store went back to a state with this number of placed tasks. */
  setBack(placedTasks: number): void {
    this.#wasSetBack = true
    this.#placedTasks = placedTasks
  }

  saw(events: readonly Event[]): void {
    this.#lastEventAt = (events.at(-1) as Event).at
    for (const { kind, nodeId } of events) {
      if (kind === 'task_placed') this.#placedTasks += 1
      else if (kind === 'task_returned' || (kind === 'task_finished' && nodeId !== null))
        this.#placedTasks -= 1
    }
  }

  /** No task is placed, no waiting task can ever be placed, and this instant is over. */
  canNothingStart(world: World): boolean {
    return (
      this.#placedTasks === 0 &&
      world.controller.cluster.waiting.gpus === 0 &&
      world.clock.nextAt() !== world.clock.now() &&
      !(this.#wasSetBack && world.controller.cluster.nodes.size < world.fleet.servers.size) &&
      !isResultAwaited(world)
    )
  }

  afterStep(world: World): void {
    this.#steps += 1
    if (this.#steps % CHECK_EVERY_STEPS !== 0) return
    this.#onProgress?.(this.#fraction(world))
    this.isQuiet = world.clock.now() - this.#lastEventAt > this.#quietMs
    if (this.isQuiet) this.isStuck = isAllWaitingForever(world)
  }

  #fraction(world: World): number {
    if (this.#untilMs !== null && this.#untilMs > 0) return Math.min(1, world.nowMs / this.#untilMs)
    const { submitted, unfinished } = world.collector
    return this.#expectedTasks === null
      ? 0
      : Math.min(1, (submitted - unfinished) / Math.max(1, this.#expectedTasks))
  }
}

/**
 * No task has a GPU or will request one by itself: all wait for a placement, a return, or a node that does
 * not return.
 */
function isAllWaitingForever(world: World): boolean {
  for (const { placement, state } of world.controller.views.openTasks()) {
    if (state === 'unreachable') continue
    if (placement !== null && !(placement.residency === 'swapped_out' && placement.wantsGpu)) return false
  }
  return true
}

/** A node has announced the result of an earlier attempt: its task ends, or waits again. */
function isResultAwaited(world: World): boolean {
  for (const { trouble } of world.controller.views.openTasks())
    if (trouble.pause?.reason === 'RESULT_AWAITED') return true
  return false
}
