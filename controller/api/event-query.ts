/** Query parameters about events, as the store and streams take them. */
import { EVENT_KINDS, type EventKind } from '../domain/event.ts'
import type { EventQuery } from '../ports/store.ts'
import { invalidField } from './errors.ts'
import { momentOf } from './moment.ts'
import type { EventQueryBody } from './schema/event.ts'

const DEFAULT_LIMIT = 50

/** @throws ApiProblem when a kind or a time is none. */
export function eventQueryOf(query: EventQueryBody): EventQuery {
  const { after = 0, before = null, order = 'oldest', since, until, kind, task = null, node = null, limit = DEFAULT_LIMIT } = query
  return {
    afterSeq: after,
    beforeSeq: before,
    isNewestFirst: order === 'newest',
    fromAt: momentOf('since', since),
    untilAt: momentOf('until', until),
    kinds: kindsOf(kind),
    taskId: task,
    nodeId: node,
    limit,
  }
}

/** In the order of their names, each once; null: all. */
export function kindsOf(text: string | undefined): readonly EventKind[] | null {
  if (text === undefined) return null
  const names = new Set(text.split(','))
  const kinds = EVENT_KINDS.filter((kind) => names.delete(kind))
  const [unknown] = names
  if (unknown === undefined) return kinds
  throw invalidField('/kind', `query parameter kind must be one or several of ${EVENT_KINDS.join(', ')}, got ${JSON.stringify(unknown)}`)
}
