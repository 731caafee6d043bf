/** Which answers an event makes old. At most twice a second, so that a storm of events is not a storm of requests. */
import type { QueryClient } from '@tanstack/solid-query'
import { onCleanup } from 'solid-js'
import type { Feed } from '../api/feed.ts'
import { subjectsOf, type Subject } from './subjects.ts'

const EVERY_MS = 500
const ALL: readonly Subject[] = ['tasks', 'nodes', 'groups', 'config', 'events', 'series', 'decisions']

export function refreshFrom(feed: Feed, queries: QueryClient): void {
  const old = new Set<Subject>()
  let timer: ReturnType<typeof setTimeout> | undefined
  const flush = (): void => {
    timer = undefined
    for (const subject of old) void queries.invalidateQueries({ queryKey: [subject] })
    old.clear()
  }
  feed.onEvents((events) => {
    for (const subject of events === null ? ALL : events.flatMap(subjectsOf)) old.add(subject)
    timer ??= setTimeout(flush, EVERY_MS)
  })
  onCleanup(() => clearTimeout(timer))
}
