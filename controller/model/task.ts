/** The states that a task passes through. */
import { MIN_TASK_ID_PREFIX } from '../../protocol/limits.ts'
import type { TaskState } from '../../protocol/units.ts'

/** A task in a final state never changes. */
export type FinalState = Extract<TaskState, 'completed' | 'failed' | 'cancelled' | 'lost'>

export function isFinal(state: TaskState): state is FinalState {
  return state === 'completed' || state === 'failed' || state === 'cancelled' || state === 'lost'
}

/** Part of the name, the whole id, or 4 or more characters at the beginning of the id. */
export function isFoundBy(
  text: string,
  { id, name }: { readonly id: string; readonly name: string },
): boolean {
  return name.includes(text) || id === text || (text.length >= MIN_TASK_ID_PREFIX && id.startsWith(text))
}

/** The three lists of the specification (section 3). */
export function listOf(state: TaskState): 'running' | 'pending' | 'completed' {
  if (state === 'pending') return 'pending'
  return isFinal(state) ? 'completed' : 'running'
}
