/**
 * Removes from inputs what decides nothing and may be confidential: command lines, values of environment
 * variables, secrets and tokens. Whether a task has a command decides (a task without one is a lease), so a
 * placeholder remains.
 */
import { withoutValues } from '../../protocol/task-body.ts'
import type { RunPolicy } from '../../protocol/task.ts'
import type { StoredState } from '../ports/store.ts'

export const NOT_RECORDED: readonly string[] = ['(not recorded)']

export function withoutSecrets(state: StoredState): StoredState {
  return { ...state, tokens: [], openTasks: state.openTasks.map((task) => withoutCommandLine(task)) }
}

/** Returns a task or request without its values, and with a placeholder for a `command` that is not null. */
export function withoutCommandLine<T>(value: T): T {
  if (typeof value !== 'object' || value === null || !('command' in value) || value.command === null)
    return value
  return { ...withoutValues(value as T & Pick<RunPolicy, 'environment'>), command: NOT_RECORDED }
}
