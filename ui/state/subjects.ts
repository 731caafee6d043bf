/** The queries that an event outdates. Pure. */
import type { EventBody } from '../../controller/api/schema/event.ts'

/** First part of the key of the queries. */
export type Subject = 'tasks' | 'nodes' | 'groups' | 'config' | 'events' | 'series' | 'decisions' | 'recovery'

export function subjectsOf({ kind }: Pick<EventBody, 'kind'>): readonly Subject[] {
  if (kind.startsWith('task_')) return ['tasks', 'nodes', 'events', 'decisions']
  if (kind.startsWith('node_')) return ['nodes', 'events']
  if (kind.startsWith('group_')) return ['groups', 'nodes', 'events']
  if (kind === 'store_behind' || kind === 'recovery' || kind.startsWith('attempt_'))
    return ['recovery', 'nodes', 'tasks', 'events']
  if (kind.startsWith('config_')) return ['config', 'nodes', 'events']
  return ['events']
}
