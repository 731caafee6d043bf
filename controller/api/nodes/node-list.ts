/** Nodes in an order of their own figures, a page at a time. */
import { hasCondition, needsAttention } from '../../model/node-conditions.ts'
import type { Node } from '../../model/placement.ts'
import type { Views } from '../../query/views.ts'
import { inOrder, type Direction, type OrderedRest, type Place } from '../http/keyed-order.ts'
import { canonicalId } from '../http/names.ts'
import type { NodeQuery, NodeSort } from './schema.ts'

type KeyOf = (node: Node, views: Pick<Views, 'nodeSwaps'>) => Place

/**
 * What an order compares, the first difference decides; then registration, so that each order is total. load:
 * entries that wait for bytes there, then `allocated`. allocated: share of the commit limit that is promised.
 * used: share of physical VRAM that is held. swaps: swap-outs and swap-ins since the controller started.
 */
const KEYS: Readonly<Record<NodeSort, KeyOf>> = {
  registered: () => [],
  name: ({ name }) => [name],
  load: (node) => [node.queue.length, allocatedShare(node)],
  allocated: (node) => [allocatedShare(node)],
  used: (node) => [usedShare(node)],
  swaps: (node, views) => {
    const { swapOuts, swapIns } = views.nodeSwaps(node)
    return [swapOuts + swapIns]
  },
}

export interface NodePageRequest {
  readonly sort: NodeSort
  /** null: as people ask for it first: names upwards, figures downwards. */
  readonly order: Direction | null
  readonly cursor: string | null
}

/** @throws ApiProblem when the cursor is invalid, or belongs to another order. */
export function sortedNodes(
  views: Views,
  filter: Pick<NodeQuery, 'status' | 'group' | 'q'>,
  { sort, order, cursor }: NodePageRequest,
): OrderedRest<Node> {
  const matching = [...views.nodes()].filter((node) => matches(node, filter))
  const keyOf = KEYS[sort]
  return inOrder(
    matching,
    {
      sort,
      direction: order ?? (sort === 'registered' || sort === 'name' ? 'asc' : 'desc'),
      placeOf: (node) => [...keyOf(node, views), node.ordinal],
      types: [...KEY_TYPES[sort], 'number'],
    },
    cursor,
  )
}

function matches(node: Node, { status, group, q }: Pick<NodeQuery, 'status' | 'group' | 'q'>): boolean {
  return (
    (status === undefined || hasStatus(node, status)) &&
    (group === undefined || node.groups.includes(group)) &&
    (q === undefined || node.name.includes(q) || node.id === canonicalId(q))
  )
}

function hasStatus(node: Node, status: NonNullable<NodeQuery['status']>): boolean {
  if (status === 'up' || status === 'suspect' || status === 'unreachable') return node.status === status
  return status === 'attention' ? needsAttention(node) : hasCondition(node, status)
}

/** Returns the allocated share of the commit limit. The limit may be 0 while VRAM is allocated. */
function allocatedShare({ gpus }: Node): number {
  const limit = gpus.reduce((sum, gpu) => sum + gpu.limitMib, 0)
  const committed = gpus.reduce((sum, gpu) => sum + gpu.noswapMib + gpu.swappableMib, 0)
  return committed / Math.max(1, limit)
}

function usedShare({ gpus }: Node): number {
  const physical = gpus.reduce((sum, gpu) => sum + gpu.physicalMib, 0)
  const used = gpus.reduce(
    (sum, gpu) => sum + gpu.noswapResidentMib + gpu.swappableResidentMib + gpu.foreignMib,
    0,
  )
  return physical === 0 ? 0 : used / physical
}

const KEY_TYPES: Readonly<Record<NodeSort, readonly ('number' | 'string')[]>> = {
  registered: [],
  name: ['string'],
  load: ['number', 'number'],
  allocated: ['number'],
  used: ['number'],
  swaps: ['number'],
}
