/** Attempts that were given up before their node said how they ended: their results may still arrive (R8). */
import type { LivePlacement, LiveTask } from '../live.ts'

/** Results are awaited of at most this many attempts of a task; the oldest is dropped. */
const MAX_GIVEN_UP = 8

/** The attempt goes, and its result is not known. Call before the task is pending again. */
export function noteGivenUp({ task, node, attempt }: LivePlacement): void {
  task.givenUp = [...task.givenUp.slice(1 - MAX_GIVEN_UP), { attempt, nodeId: node.id, isOvertaken: false }]
}

/** A later attempt has started: what the earlier ones returned no longer ends the task. */
export function overtakeGivenUp(task: LiveTask): void {
  if (task.givenUp.length === 0) return
  task.givenUp = task.givenUp.map((attempt) => ({ ...attempt, isOvertaken: true }))
}
