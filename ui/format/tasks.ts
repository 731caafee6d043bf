/** What tables and pages say of a task, from its answer. Pure. */
import type { TaskBody } from '../../controller/api/schema/task.ts'
import { mib, seconds, secondsSince, UNKNOWN } from './figures.ts'
import { reasonWords } from './reasons.ts'

/** Placed and not final, or waiting: an end is not reached. */
export function isOpen({ state }: Pick<TaskBody, 'state'>): boolean {
  return state === 'pending' || state === 'assigned' || state === 'running' || state === 'unreachable'
}

export function residencyWords({ residency }: Pick<TaskBody, 'residency'>): string {
  return residency === 'none' ? UNKNOWN : residency.replace('_', ' ')
}

/** `0, 2` of a placement. */
export function gpuWords(gpus: readonly number[]): string {
  return gpus.join(', ')
}

/** Asked for on each GPU. */
export function askedWords({ vram_mib, gpu_count }: Pick<TaskBody, 'vram_mib' | 'gpu_count'>): string {
  const each = vram_mib === null ? 'all of a GPU' : mib(vram_mib)
  return gpu_count === 1 ? each : `${gpu_count} × ${each}`
}

/** Held in VRAM on each GPU: its demand while it is there, 0 while it is not. */
export function usedMib({ placement, residency }: Pick<TaskBody, 'placement' | 'residency'>): number | null {
  if (placement === null) return null
  return residency === 'none' || residency === 'swapped_out' ? 0 : placement.demand_mib
}

/**
 * How long it has not used the GPU: 0 while it wants it. Not known while it is swapped out where nothing can
 * say that it wants the GPU.
 */
export function idleWords(
  { placement, residency }: Pick<TaskBody, 'placement' | 'residency'>,
  now: number,
): string {
  if (placement === null || placement.started_at === null) return UNKNOWN
  if (residency === 'swapped_out' && !placement.can_signal) return UNKNOWN
  return placement.wants_gpu ? 'wants it' : seconds(secondsSince(placement.idle_since, now))
}

/** Its state, and what an operator has done to it. */
export function stateWords({
  state,
  held,
  stopping_since,
}: Pick<TaskBody, 'state' | 'held' | 'stopping_since'>): string {
  if (stopping_since !== null) return `${state}, stopping`
  return held ? `${state}, held` : state
}

/** Why it waits or why it ended; empty for who needs none. */
export function reasonOf({ wait, end_reason }: Pick<TaskBody, 'wait' | 'end_reason'>): string {
  if (wait !== null) return reasonWords(wait.reason)
  return end_reason ?? ''
}
