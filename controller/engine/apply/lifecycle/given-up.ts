/** Attempts given up before their node reported how they ended: their results may still arrive (R8). */
import type { LivePlacement, LiveTask } from '../../../state/facts.ts'

/** Maximum number of attempts of a task whose results are awaited; the oldest is dropped. */
const MAX_GIVEN_UP = 8

/** Records an attempt that is given up without a known result. Call before the task is pending again. */
export function noteGivenUp({ task, node, attempt }: LivePlacement): void {
  task.givenUp = [...task.givenUp.slice(1 - MAX_GIVEN_UP), { attempt, nodeId: node.id, isOvertaken: false }]
}

/** A later attempt has started: results of earlier ones no longer end the task. */
export function overtakeGivenUp(task: LiveTask): void {
  if (task.givenUp.length === 0) return
  task.givenUp = task.givenUp.map((attempt) => ({ ...attempt, isOvertaken: true }))
}
