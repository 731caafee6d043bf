/** Which answers an event makes old. At most twice a second, so that a storm of events is not a storm of requests. */
import type { QueryClient } from '@tanstack/solid-query'
import { onCleanup } from 'solid-js'
import type { EventBody } from '../../controller/api/schema/event.ts'
import type { Feed } from '../api/feed.ts'

/** The first part of the key of every query that shows it. */
export type Subject = 'tasks' | 'nodes' | 'groups' | 'config' | 'events' | 'series' | 'decisions'

const EVERY_MS = 500
const ALL: readonly Subject[] = ['tasks', 'nodes', 'groups', 'config', 'events', 'series', 'decisions']

export function subjectsOf({ kind }: Pick<EventBody, 'kind'>): readonly Subject[] {
  if (kind.startsWith('task_')) return ['tasks', 'nodes', 'events', 'decisions']
  if (kind.startsWith('node_')) return ['nodes', 'events']
  if (kind.startsWith('group_')) return ['groups', 'nodes', 'events']
  if (kind.startsWith('config_')) return ['config', 'nodes', 'events']
  return ['events']
}

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
