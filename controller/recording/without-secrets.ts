/**
 * What of an input is not written down, because nothing is decided from it and it may be nobody's business:
 * command lines and tokens. Whether a task has a command at all decides (one without is a lease), so that a
 * mark stands in its place.
 */
import type { StoredState } from '../ports/store.ts'

export const NOT_RECORDED: readonly string[] = ['(not recorded)']

export function withoutSecrets(state: StoredState): StoredState {
  return { ...state, tokens: [], openTasks: state.openTasks.map((task) => withoutCommandLine(task)) }
}

/** The same value, but for a `command` that is not null. */
export function withoutCommandLine<T>(value: T): T {
  if (typeof value !== 'object' || value === null || !('command' in value) || value.command === null)
    return value
  return { ...value, command: NOT_RECORDED }
}
