/** Texts for tasks, from their API objects. Pure. */
import type { TaskBody } from '../../controller/api/tasks/schema.ts'
import { mib, seconds, secondsSince, UNKNOWN } from './figures.ts'
import { reasonWords } from './reasons.ts'

/** True if the task has not ended. */
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

/** Requested VRAM on each GPU. */
export function askedWords({ vram_mib, gpu_count }: Pick<TaskBody, 'vram_mib' | 'gpu_count'>): string {
  const each = vram_mib === null ? 'whole GPU' : mib(vram_mib)
  return gpu_count === 1 ? each : `${gpu_count} × ${each}`
}

/** VRAM in use on each GPU: the demand while the task is resident or moving, otherwise 0. */
export function usedMib({ placement, residency }: Pick<TaskBody, 'placement' | 'residency'>): number | null {
  if (placement === null) return null
  return residency === 'none' || residency === 'swapped_out' ? 0 : placement.demand_mib
}

/**
 * Time since the last use of the GPU: 0 while the task wants the GPU. Unknown while it is swapped out and
 * cannot signal that it wants the GPU.
 */
export function idleWords(
  { placement, residency }: Pick<TaskBody, 'placement' | 'residency'>,
  now: number,
): string {
  if (placement === null || placement.started_at === null) return UNKNOWN
  if (residency === 'swapped_out' && !placement.can_signal) return UNKNOWN
  return placement.wants_gpu ? 'wants the GPU' : seconds(secondsSince(placement.idle_since, now))
}

/** The state, and what an operator changed. */
export function stateWords({
  state,
  held,
  stopping_since,
}: Pick<TaskBody, 'state' | 'held' | 'stopping_since'>): string {
  if (stopping_since !== null) return `${state}, stopping`
  return held ? `${state}, on hold` : state
}

/** Colour of a state: out of VRAM is a state of its own. */
export function toneOf({
  state,
  residency,
}: Pick<TaskBody, 'state' | 'residency'>): 'running' | 'pending' | 'failed' | 'cancelled' | 'out' {
  if (residency === 'swapped_out') return 'out'
  if (state === 'failed' || state === 'lost' || state === 'unreachable') return 'failed'
  if (state === 'cancelled') return 'cancelled'
  return state === 'pending' ? 'pending' : 'running'
}

/** Why it waits or why it ended; empty for other tasks. */
export function reasonOf({ wait, end_reason }: Pick<TaskBody, 'wait' | 'end_reason'>): string {
  if (wait !== null) return reasonWords(wait.reason)
  return end_reason ?? ''
}
