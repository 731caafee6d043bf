/**
 * Advances virtual time in a run: from one stop to the next, which is the end, the next sample, or the next
 * action of the operator.
 */
import type { DurationMs } from '../../protocol/units.ts'
import type { BoundedArrivals } from './arrivals-until.ts'
import type { OperatorAgenda } from './operator-agenda.ts'
import type { ProgressMonitor } from './progress-monitor.ts'
import type { SeriesSampler } from './series-sampler.ts'
import type { ScenarioClock } from '../scenario/scenario.ts'
import type { World } from '../world/world.ts'

/** Observes a run, for assertions. */
export interface StepObserver {
  /** After every step of the clock. */
  afterStep(): void
}

export interface RunParts {
  readonly clock: ScenarioClock
  readonly arrivals: BoundedArrivals
  readonly agenda: OperatorAgenda
  readonly progress: ProgressMonitor
  readonly watcher: StepObserver | null
  readonly sampler: SeriesSampler | null
}

export class RunLoop {
  readonly #world: World
  readonly #parts: RunParts
  /** Past the end time: the run ends with its last task. */
  #isDraining = false

  constructor(world: World, parts: RunParts) {
    this.#world = world
    this.#parts = parts
  }

  async runToEnd(): Promise<void> {
    const { untilMs, drain } = this.#parts.clock
    if (untilMs !== null)
      while (this.#world.nowMs < untilMs || this.#parts.agenda.isDue) await this.#stretch(untilMs)
    if (untilMs === null || drain) await this.#drain()
    this.#parts.sampler?.finish(this.#world)
  }

  /** Ends when no task is left, nothing is scheduled, or nothing scheduled can change anything. */
  async #drain(): Promise<void> {
    this.#isDraining = true
    // This schedules the arrivals of the current instant.
    await this.#stretch(this.#world.nowMs)
    while (!this.#isOver() && (this.#parts.agenda.isDue || this.#world.clock.nextAt() !== null))
      await this.#stretch(null)
  }

  /** Runs to that instant, the next sample, an action of the operator, or the end. */
  async #stretch(toMs: DurationMs | null): Promise<void> {
    const { agenda, sampler } = this.#parts
    if (agenda.isDue) await agenda.serve()
    const sampleMs = sampler?.nextAtMs ?? null
    const isToSample = sampleMs !== null && (toMs === null || sampleMs <= toMs)
    await this.#world.runUntil(isToSample ? sampleMs : toMs, this.#isInterrupted)
    // The answer to the operator may have taken time.
    if (isToSample && !agenda.isDue && !this.#isOver() && this.#world.nowMs >= sampleMs)
      sampler?.take(this.#world)
  }

  readonly #isInterrupted = (): boolean => {
    const { watcher, progress, agenda } = this.#parts
    if (watcher !== null) watcher.afterStep()
    progress.afterStep(this.#world)
    return agenda.isDue || this.#isOver()
  }

  #isOver(): boolean {
    const { arrivals, agenda, progress } = this.#parts
    if (!this.#isDraining || !agenda.isOver) return false
    if (this.#world.isIdle()) return true
    // A commit on a slow disk may contain the end of a task.
    if (this.#world.controller.status.isCommitting) return false
    const isHopeless =
      (this.#world.areFaultsOver && (progress.isStuck || progress.canNothingStart(this.#world))) ||
      (this.#world.isLeftBehind && progress.isQuiet)
    return arrivals.isOver && isHopeless && !arrivals.hasCancelAfter(this.#world.nowMs)
  }
}
