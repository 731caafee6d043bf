/** The states that a task passes through. */
import type { TaskState } from '../../protocol/units.ts'

/** A task in a final state never changes. */
export type FinalState = Extract<TaskState, 'completed' | 'failed' | 'cancelled' | 'lost'>

export type EntryKind = 'swap_in' | 'growth' | 'placement'

export function isFinal(state: TaskState): state is FinalState {
  return state === 'completed' || state === 'failed' || state === 'cancelled' || state === 'lost'
}

/** The three lists of the specification (section 3). */
export function listOf(state: TaskState): 'running' | 'pending' | 'completed' {
  if (state === 'pending') return 'pending'
  return isFinal(state) ? 'completed' : 'running'
}
