/**
 * One action for many tasks: selects the tasks that it applies to, and sends a few requests at a time. Pure.
 */
import type { TaskBody } from '../../../controller/api/tasks/schema.ts'
import { errorText } from '../../api/error-text.ts'

export interface Result {
  readonly id: string
  readonly name: string
  readonly isDone: boolean
  readonly words: string
}

export interface Parts {
  readonly ready: readonly TaskBody[]
  /** With the reason. */
  readonly skipped: readonly Result[]
}

export function partsOf(tasks: readonly TaskBody[], whyNot: (task: TaskBody) => string | null): Parts {
  const ready: TaskBody[] = []
  const skipped: Result[] = []
  for (const task of tasks) {
    const reason = whyNot(task)
    if (reason === null) ready.push(task)
    else skipped.push({ id: task.id, name: task.name, isDone: false, words: `Skipped: ${reason}` })
  }
  return { ready, skipped }
}

/** Requests at a time: the controller answers other clients meanwhile. */
const AT_A_TIME = 6

/** @param done words for success */
export async function runEach(
  tasks: readonly TaskBody[],
  run: (task: TaskBody) => Promise<unknown>,
  done: string,
): Promise<readonly Result[]> {
  const results: Result[] = []
  const rest = [...tasks]
  const work = async (): Promise<void> => {
    for (let task = rest.shift(); task !== undefined; task = rest.shift()) {
      const { id, name } = task
      try {
        await run(task)
        results.push({ id, name, isDone: true, words: done })
      } catch (error) {
        const words = errorText(error)
        results.push({ id, name, isDone: false, words: `Failed: ${words}` })
      }
    }
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, work))
  return results
}

/** Returns failed results first, because they need attention. */
export function inOrder(results: readonly Result[]): readonly Result[] {
  return [...results.filter(({ isDone }) => !isDone), ...results.filter(({ isDone }) => isDone)]
}
