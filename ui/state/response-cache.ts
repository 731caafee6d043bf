/**
 * The cache of responses: events outdate queries, which are refreshed at most twice a second, so that a burst
 * of events does not cause a burst of requests; responses are values that reactive stores do not traverse.
 */
import type { Query, QueryClient } from '@tanstack/solid-query'
import { onCleanup } from 'solid-js'
import type { EventBody } from '../../controller/api/observe/event-schema.ts'

/** First part of the key of the queries. */
export type Subject = 'tasks' | 'nodes' | 'groups' | 'config' | 'events' | 'series' | 'decisions' | 'recovery'

const REFRESH_EVERY_MS = 500
const ALL: readonly Subject[] = [
  'tasks',
  'nodes',
  'groups',
  'config',
  'events',
  'series',
  'decisions',
  'recovery',
]

/** Source of events; null: events may be missing. */
export interface EventSource {
  onEvents(listener: (events: readonly EventBody[] | null) => void): void
}

export function refreshFrom(feed: EventSource, queries: QueryClient): void {
  const old = new Set<Query>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const flush = (): void => {
    timer = undefined
    for (const query of old) {
      // A query that is being fetched is fetched again afterwards. Restarting it for every event could
      // delay a slow response forever.
      if (query.state.fetchStatus === 'fetching' && query.state.data !== undefined) continue
      old.delete(query)
      void queries.invalidateQueries({ queryKey: query.queryKey, exact: true })
    }
    if (old.size > 0) timer = setTimeout(flush, REFRESH_EVERY_MS)
  }
  feed.onEvents((events) => {
    const subjects = new Set(events === null ? ALL : events.flatMap(subjectsOf))
    for (const subject of subjects)
      for (const query of queries.getQueryCache().findAll({ queryKey: [subject] })) old.add(query)
    if (old.size > 0) timer ??= setTimeout(flush, REFRESH_EVERY_MS)
  })
  onCleanup(() => clearTimeout(timer))
}

/** The queries that an event outdates. */
export function subjectsOf({ kind }: Pick<EventBody, 'kind'>): readonly Subject[] {
  if (kind.startsWith('task_')) return ['tasks', 'nodes', 'events', 'decisions']
  if (kind.startsWith('node_')) return ['nodes', 'events']
  if (kind.startsWith('group_')) return ['groups', 'nodes', 'events']
  if (kind === 'store_behind' || kind === 'recovery' || kind.startsWith('attempt_'))
    return ['recovery', 'nodes', 'tasks', 'events']
  if (kind.startsWith('config_')) return ['config', 'nodes', 'events']
  return ['events']
}

/**
 * Not a plain object, so that the store treats it as one value: traversing it on each change of a query costs
 * more than drawing it.
 */
class Opaque {
  constructor(fields: object) {
    Object.assign(this, fields)
  }
}

const known = new WeakMap<object, unknown>()

/**
 * Returns an object with the same fields, and for the same response the same object, so that unchanged data
 * causes no update. Lists and primitive values stay as they are.
 */
export function opaque(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null || Object.getPrototypeOf(answer) !== Object.prototype)
    return answer
  const made = known.get(answer) ?? new Opaque(answer)
  known.set(answer, made)
  return made
}
