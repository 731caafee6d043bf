/**
 * The line of a recording for the state at a start, which is as large as all open tasks. It never changes, so
 * it is serialised after the start, in parts: the controller answers meanwhile.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { InputEntry } from '../../ports/recording-log.ts'

export type LoadedEntry = Extract<InputEntry, { readonly k: 'loaded' }>

/** About 100 KiB. */
const TASKS_AT_A_TIME = 200

export async function loadedLine({ state, ...entry }: LoadedEntry): Promise<string> {
  const { openTasks, ...rest } = state
  const parts: string[] = []
  for (let from = 0; from < openTasks.length; from += TASKS_AT_A_TIME) {
    parts.push(
      openTasks
        .slice(from, from + TASKS_AT_A_TIME)
        .map((task) => JSON.stringify(task))
        .join(),
    )
    await nextTurn()
  }
  const withoutTasks = JSON.stringify({ ...entry, state: { ...rest, openTasks: [] } })
  return `${withoutTasks.slice(0, -END.length)}[${parts.join()}]}}\n`
}

const END = '[]}}'
