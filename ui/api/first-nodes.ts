/** Reads nodes from the first page on. Pages are limited by size, so several may be needed. */
import type { NodeBody, NodePage } from '../../controller/api/nodes/schema.ts'
import type { ApiClient } from './client.ts'

/** @param most maximum number of nodes */
export async function firstNodes(
  api: ApiClient,
  most: number,
  signal?: AbortSignal,
): Promise<readonly NodeBody[]> {
  const nodes: NodeBody[] = []
  let cursor = ''
  do {
    const { items, next_cursor: next } = await api.get<NodePage>(
      '/nodes',
      { limit: most - nodes.length, cursor },
      signal,
    )
    nodes.push(...items)
    cursor = next ?? ''
  } while (cursor !== '' && nodes.length < most)
  return nodes
}
