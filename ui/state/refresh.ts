/**
 * Refreshes the queries that an event outdates, at most twice a second, so that a burst of events does not
 * cause a burst of requests.
 */
import type { Query, QueryClient } from '@tanstack/solid-query'
import { onCleanup } from 'solid-js'
import type { EventBody } from '../../controller/api/schema/event.ts'
import { subjectsOf, type Subject } from './subjects.ts'

const EVERY_MS = 500
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
export interface EventTeller {
  onEvents(listener: (events: readonly EventBody[] | null) => void): void
}

export function refreshFrom(feed: EventTeller, queries: QueryClient): void {
  const old = new Set<Query>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const flush = (): void => {
    timer = undefined
    for (const query of old) {
      // A query that is being fetched is fetched once more afterwards. Restarting it for every event could
      // delay a slow response forever.
      if (query.state.fetchStatus === 'fetching' && query.state.data !== undefined) continue
      old.delete(query)
      void queries.invalidateQueries({ queryKey: query.queryKey, exact: true })
    }
    if (old.size > 0) timer = setTimeout(flush, EVERY_MS)
  }
  feed.onEvents((events) => {
    const subjects = new Set(events === null ? ALL : events.flatMap(subjectsOf))
    for (const subject of subjects)
      for (const query of queries.getQueryCache().findAll({ queryKey: [subject] })) old.add(query)
    if (old.size > 0) timer ??= setTimeout(flush, EVERY_MS)
  })
  onCleanup(() => clearTimeout(timer))
}
