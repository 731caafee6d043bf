/**
 * Where a task's output is: the server and the attempt that wrote it, for open tasks and for those that have
 * ended.
 */
import { isFinal } from '../../model/task.ts'
import { type TaskState } from '../../../protocol/units.ts'
import type { Views } from '../../query/views.ts'
import { ApiProblem, notFound } from '../http/errors.ts'

export interface LogSource {
  readonly nodeId: string
  readonly attempt: number
}

/** Maximum number of events that are searched for a task. */
const EVENT_PAGES = 50
const EVENT_PAGE = 200

/**
 * The latest attempt; null while there has been none yet.
 * @throws ApiProblem not_found when there is no such task; conflict when nothing of it will ever be written
 *   or known.
 */
export async function logSourceOf(views: Views, id: string): Promise<LogSource | null> {
  const open = views.openTask(id)
  if (open?.placement) return { nodeId: open.placement.node.id, attempt: open.attempt }
  const task = open === undefined ? await views.stored.task(id) : null
  if (open === undefined && task === null) throw notFound('task', id)
  const attempt = open?.attempt ?? task?.attempt ?? 0
  const state: TaskState = open?.state ?? task?.state ?? 'pending'
  if (attempt > 0) {
    const nodeId = await nodeOfAttempt(views, id, attempt)
    if (nodeId !== null) return { nodeId, attempt }
    if (isFinal(state))
      throw new ApiProblem(
        'conflict',
        `The task is ${state}, and the node on which it ran is no longer known.`,
      )
    return null
  }
  if (isFinal(state))
    throw new ApiProblem('conflict', `The task is ${state} and never ran; it has written nothing.`)
  return null
}

async function nodeOfAttempt(views: Views, taskId: string, attempt: number): Promise<string | null> {
  let afterSeq = 0
  for (let page = 0; page < EVENT_PAGES; page++) {
    const events = await views.stored.events({ afterSeq, taskId, nodeId: null, limit: EVENT_PAGE })
    const placed = events.find(({ kind, data }) => kind === 'task_placed' && data['attempt'] === attempt)
    if (placed !== undefined) return placed.nodeId
    afterSeq = events.at(-1)?.seq ?? afterSeq
    if (events.length < EVENT_PAGE) return null
  }
  return null
}
