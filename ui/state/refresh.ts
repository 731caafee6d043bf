/**
 * Which answers an event makes old. At most twice a second, so that a storm of events is not a storm of
 * requests.
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

/** Who tells of events; null: there may be a gap. */
export interface EventTeller {
  onEvents(listener: (events: readonly EventBody[] | null) => void): void
}

export function refreshFrom(feed: EventTeller, queries: QueryClient): void {
  const old = new Set<Query>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const flush = (): void => {
    timer = undefined
    for (const query of old) {
      // What is asked for right now is asked for once more when it is there: asked anew each time, a slow
      // answer would never arrive.
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
