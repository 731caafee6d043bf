import { isFinal } from '../../model/task.ts'
import type { Task } from '../../model/placement.ts'
import type { Views } from '../../query/views.ts'
import { ApiProblem, notFound } from '../http/errors.ts'

/** @throws ApiProblem when it is not open: 409 if it has ended, otherwise 404. */
export async function openTask(views: Views, id: string): Promise<Task> {
  const task = views.openTask(id)
  if (task !== undefined) return task
  const record = await views.stored.task(id)
  if (record === null) throw notFound('task', id)
  // The store may be a moment behind: what is open there and not in memory is ending now.
  throw new ApiProblem(
    'conflict',
    `The task ${isFinal(record.state) ? `is ${record.state}` : 'has just ended'}; ` +
      'it can no longer be changed.',
  )
}
