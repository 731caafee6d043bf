/** The nodes from the first page on: a page ends by its bytes, wherever that is. */
import type { NodeBody, NodePage } from '../../controller/api/schema/node.ts'
import type { ApiClient } from './client.ts'

/** @param most how many are wanted */
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
