/** Query parameters about events, as the store and streams take them. */
import { EVENT_KINDS, type EventKind } from '../../model/event.ts'
import type { Views } from '../../query/views.ts'
import type { EventQuery } from '../../ports/store.ts'
import { momentOf } from '../http/instant.ts'
import { nodeIdOf, taskIdOf } from '../http/names.ts'
import type { EventQueryBody } from './event-schema.ts'

const DEFAULT_LIMIT = 50

/** @throws ApiProblem when a task or a node is unknown. */
export async function eventQueryOf(query: EventQueryBody, views: Views): Promise<EventQuery> {
  const { after = 0, before = null, order = 'oldest', since, until, kind, limit = DEFAULT_LIMIT } = query
  return {
    afterSeq: after,
    beforeSeq: before,
    isNewestFirst: order === 'newest',
    fromAt: momentOf(since),
    untilAt: momentOf(until),
    kinds: kindsOf(kind),
    ...(await subjectsOf(query, views)),
    limit,
  }
}

/** The ids of the task and the node that a query names, by id or name. */
export async function subjectsOf(
  { task, node }: { readonly task?: string; readonly node?: string },
  views: Views,
): Promise<{ readonly taskId: string | null; readonly nodeId: string | null }> {
  const nodeId = node === undefined ? null : nodeIdOf(views, 'node', node)
  return { taskId: task === undefined ? null : await taskIdOf(views, 'task', task), nodeId }
}

/** In the order of their names, each once; null: all. @param text of known kinds: the schema requires it */
export function kindsOf(text: string | undefined): readonly EventKind[] | null {
  if (text === undefined) return null
  const names = text.split(',')
  return EVENT_KINDS.filter((kind) => names.includes(kind))
}
