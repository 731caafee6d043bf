/** A search for tasks and nodes, by a part of the name or by the id. Pure. */
import type { NodeBody, NodePage } from '../../controller/api/nodes/schema.ts'
import type { TaskBody, TaskPage } from '../../controller/api/tasks/schema.ts'
import { pathSegment, type ApiClient } from './client.ts'

/** Results of each kind; the lists have all. */
export const SHOWN = 10

export interface Found {
  readonly nodes: readonly NodeBody[]
  readonly nodeCount: number
  readonly tasks: readonly TaskBody[]
  /** Null: unknown. */
  readonly taskCount: number | null
}

/** @throws Refused, Unreachable */
export async function find(api: ApiClient, text: string, signal: AbortSignal): Promise<Found> {
  const [nodes, tasks] = await Promise.all([
    api.get<NodePage>('/nodes', { q: text, limit: SHOWN }, signal),
    api.get<TaskPage>('/tasks', { state: 'all', q: text, limit: SHOWN }, signal),
  ])
  return {
    nodes: nodes.items,
    nodeCount: nodes.total ?? nodes.items.length,
    tasks: tasks.items,
    taskCount: tasks.total,
  }
}

/** The page of the only result whose name or id is this text; null: no page, or more than one. */
export function exactMatch({ nodes, tasks }: Found, text: string): string | null {
  const pages = [
    ...tasks
      .filter(({ name, id }) => name === text || id === text)
      .map(({ id }) => `/tasks/${pathSegment(id)}`),
    ...nodes
      .filter(({ name, node_id: id }) => name === text || id === text)
      .map(({ node_id: id }) => `/nodes/${pathSegment(id)}`),
  ]
  const [only, other] = pages
  return only !== undefined && other === undefined ? only : null
}
