/** The outcome of tasks that a probe swaps in, derived from events and from the requester. */
import type { Event } from '../../../controller/model/event.ts'
import type { World } from '../../world/world.ts'

export class ProbePaths {
  readonly #world: World
  /** Tasks that only the probe has requested back, until they are swapped out again. */
  readonly #probed = new Set<string>()

  constructor(world: World) {
    this.#world = world
  }

  of({ kind, taskId, data }: Event): string[] {
    if (taskId === null) return []
    if (kind === 'swap_in_decided') this.#ask(taskId)
    else if (kind === 'task_finished' || kind === 'task_returned') this.#probed.delete(taskId)
    else if (kind === 'task_residency' && data['residency'] === 'resident' && this.#probed.has(taskId))
      return ['probe brought one back']
    else if (kind === 'task_residency' && data['residency'] === 'swapping_out' && this.#probed.delete(taskId))
      return this.#leave(taskId)
    return []
  }

  #ask(taskId: string): void {
    const placement = this.#world.controller.cluster.tasks.get(taskId)?.placement ?? null
    if (placement !== null && placement.isProbed && !placement.wantsGpu && !placement.isSwapInRequested)
      this.#probed.add(taskId)
  }

  /** It has not wanted the GPU since its return. */
  #leave(taskId: string): string[] {
    const placement = this.#world.controller.cluster.tasks.get(taskId)?.placement ?? null
    if (placement === null) return []
    const hasFoundWork = placement.wantsGpu || placement.wantsSince >= placement.residentSince
    return [hasFoundWork ? 'probed task found work' : 'probed task found no work and left again']
  }
}
